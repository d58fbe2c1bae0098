"""XML files: an element is a row, and what is in it are its columns.

Spark finds out the shape; plain values are read as text and parsed like those of CSV. Attributes are columns
whose names begin with `_`. The text of an element with attributes is its field `_VALUE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from esker.engine.compat import metadata_column
from esker.engine.pins import is_spark
from esker.errors import NotInThisSpark
from esker.project.sources import FilesSource
from esker.project.types import Column, Plain, columns_as_json, columns_as_text, columns_from_json, quoted
from esker.sources.files.formats import filled, locations, text_weight
from esker.sources.files.found import FoundFile
from esker.sources.files.xml_check import check_document
from esker.sources.source import MALFORMED, ORIGIN, RECORD, Sent, Weight

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class XmlFormat:
    """Reads the elements that `row_tag` names."""

    spark: SparkSession
    source: FilesSource
    checked: set[FoundFile]
    """Files that are known to be whole; one that changes is another file."""

    def check(self, files: Sequence[FoundFile]) -> None:
        if is_spark("3.5"):
            raise NotInThisSpark("does not read XML", "3.5", "4.0")
        # Spark takes everything behind the first mistake as one bad record, and a cut file as a short one.
        row_tag = self.source.row_tag
        assert row_tag is not None
        unknown = [file for file in filled(files) if file not in self.checked]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda file: check_document(file, row_tag), unknown))
        self.checked.update(unknown)

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        # Lines say nothing of rows here.
        return Weight(bytes=text_weight(files).bytes)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        if not filled(files):
            return Sent((), is_text=True, is_loose=True)
        # No types: Spark would take 007 for a number. Every record is looked at.
        reader = self.spark.read.format("xml").options(inferSchema="false", samplingRatio="1.0")
        frame = reader.options(**self._options()).load(locations(filled(files)))
        found = columns_from_json(frame.schema.jsonValue())
        columns = columns_as_text(tuple(column for column in found if column.name != MALFORMED))
        plain = tuple(column.name for column in columns if column.type == Plain("string"))
        return Sent(columns, is_text=True, untyped=plain, is_loose=True)

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        wanted = StructType.fromJson(columns_as_json(columns_as_text(columns)))
        fields = [StructField(field.name, field.dataType) for field in wanted.fields]
        schema = StructType([*fields, StructField(MALFORMED, StringType())])
        if not filled(files):
            beside = (StructField(name, StringType()) for name in (RECORD, ORIGIN))
            return self.spark.createDataFrame([], StructType([*schema, *beside]))
        reader = self.spark.read.format("xml").schema(schema).options(**self._options())
        frame = reader.load(locations(filled(files)))
        shown = F.substring(F.col(MALFORMED), 1, _SHOWN_CHARACTERS)
        told = F.concat(F.lit("is no record that the columns or the options allow: "), shown)
        path = metadata_column(frame, "_metadata").getField("file_path")
        values = [F.col(quoted(field.name)) for field in fields]
        return frame.select(
            *values, told.alias(MALFORMED), F.col(MALFORMED).alias(RECORD), path.alias(ORIGIN)
        )

    def _options(self) -> dict[str, str]:
        return {
            "rowTag": str(self.source.row_tag),
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": MALFORMED,
            **self.source.options,
        }
