"""Parquet files: columns and types come from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from esker.errors import ColumnRefused
from esker.project.sources import FilesSource
from esker.project.types import Column, columns_as_json, columns_from_json
from esker.sources.files.formats import locations
from esker.sources.files.listing import FoundFile
from esker.sources.files.parquet_footer import Footer, read_footer
from esker.sources.files.widening import NoCommonType, widen_columns
from esker.sources.source import ORIGIN, Sent, Weight


@dataclass(frozen=True)
class ParquetFormat:
    """Reads Parquet files, also such whose columns differ."""

    spark: SparkSession
    source: FilesSource
    footers: dict[FoundFile, Footer]
    """Footers that have been read; a file that changes is another one."""
    schemas: dict[str, tuple[Column, ...]]
    """Columns that Spark reads from files, by the text of their schema: asking it takes a job."""

    def check(self, files: Sequence[FoundFile]) -> None:
        self._columns(files)

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        return Sent(self._columns(files))

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        # Spark reads a narrower number as a wider one, and a column that a file lacks as null.
        schema = StructType.fromJson(columns_as_json(self._columns(files)))
        reader = self.spark.read.format("parquet").schema(schema).options(**self.source.options)
        frame = reader.load(locations(files))
        path = frame.metadataColumn("_metadata").getField("file_path")
        return frame.select("*", path.alias(ORIGIN))

    def weight(self, files: Sequence[FoundFile]) -> Weight:
        footers = [self._footer(file) for file in files]
        return Weight(sum(footer.rows for footer in footers), sum(footer.bytes for footer in footers))

    def _columns(self, files: Sequence[FoundFile]) -> tuple[Column, ...]:
        """Return the columns of all files, each wide enough for every file."""
        examples: dict[str, FoundFile] = {}
        with ThreadPoolExecutor(8) as pool:
            for file, footer in zip(files, pool.map(self._footer, files), strict=True):
                examples.setdefault(footer.schema, file)
        columns: tuple[Column, ...] = ()
        for schema, file in examples.items():
            if schema not in self.schemas:
                self.schemas[schema] = self._read_columns(file)
            try:
                columns = widen_columns(columns, self.schemas[schema])
            except NoCommonType as error:
                raise ColumnRefused(
                    file.path,
                    error.path,
                    f"It is {error.other} there and {error.one} in other files of this batch.",
                    "Write it with one type in all files, or load the files into tables of their own.",
                ) from None
        return columns

    def _read_columns(self, file: FoundFile) -> tuple[Column, ...]:
        frame = self.spark.read.format("parquet").options(**self.source.options).load(locations([file]))
        found = columns_from_json(frame.schema.jsonValue())
        return tuple(Column(each.name, each.type) for each in found)

    def _footer(self, file: FoundFile) -> Footer:
        if file not in self.footers:
            self.footers[file] = read_footer(file)
        return self.footers[file]
