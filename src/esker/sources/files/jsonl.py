"""JSON lines: Spark finds out the types; plain values are then read as text and parsed like those of CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.project.sources import FilesSource
from esker.project.types import Column, Decimal, Plain, columns_as_json, columns_from_json
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
        columns = tuple(c for c in columns_from_json(schema) if c.name != MALFORMED)
        return Sent(columns, is_text=True, is_exact=True)

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        # Values are read as they stand in the file, and parsed by our own checks: Spark would round
        # decimals and take whole numbers for seconds since 1970.
        wanted = StructType.fromJson(columns_as_json(tuple(_as_sent(column) for column in columns)))
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


def _as_sent(column: Column) -> Column:
    match column.type:
        case Plain():
            return Column(column.name, Plain("string"))
        case Decimal(precision, scale):
            # With every digit that fits: what the column has no room for is found out, not rounded.
            return Column(column.name, Decimal(38, 38 - (precision - scale)))
    return column
