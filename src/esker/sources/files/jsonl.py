"""JSON lines: Spark finds out the types, then parses to those of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.project.sources import FilesSource
from esker.project.types import Column, columns_as_json, columns_from_json
from esker.sources.files.formats import locations
from esker.sources.files.listing import FoundFile
from esker.sources.source import MALFORMED, ORIGIN, Sent


@dataclass(frozen=True)
class JsonLinesFormat:
    """Reads one JSON object a line."""

    spark: SparkSession
    source: FilesSource

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        # Every line is looked at: a field that only the last line has would otherwise be lost. A field
        # that is null everywhere is left out; it gets a column when a value shows its type.
        frame = self.spark.read.format("json").options(
            dropFieldIfAllNull="true", samplingRatio="1.0", **self._options()
        )
        schema = frame.load(locations(files)).schema.jsonValue()
        return Sent(tuple(c for c in columns_from_json(schema) if c.name != MALFORMED))

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        # Required is checked row by row later; the parser would only fail on it.
        wanted = StructType.fromJson(columns_as_json(columns))
        fields = [StructField(field.name, field.dataType) for field in wanted.fields]
        frame = (
            self.spark.read.format("json")
            .schema(StructType([*fields, StructField(MALFORMED, StringType())]))
            .options(**self._options())
            .load(locations(files))
        )
        return frame.select("*", F.col("_metadata.file_path").alias(ORIGIN))

    def _options(self) -> dict[str, str]:
        return {
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": MALFORMED,
            "encoding": self.source.encoding,
            "lineSep": "\n",
            **self.source.options,
        }
