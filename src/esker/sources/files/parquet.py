"""Parquet files: columns and types come from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from esker.project.sources import FilesSource
from esker.project.types import Column, columns_from_json
from esker.sources.files.formats import locations
from esker.sources.files.listing import FoundFile
from esker.sources.source import ORIGIN, Sent


@dataclass(frozen=True)
class ParquetFormat:
    """Reads Parquet files, also such whose columns differ."""

    spark: SparkSession
    source: FilesSource

    def sent(self, files: Sequence[FoundFile]) -> Sent:
        columns = columns_from_json(self._frame(files).schema.jsonValue())
        return Sent(tuple(Column(column.name, column.type) for column in columns))

    def read(self, files: Sequence[FoundFile], columns: tuple[Column, ...]) -> DataFrame:
        return self._frame(files).select("*", F.col("_metadata.file_path").alias(ORIGIN))

    def _frame(self, files: Sequence[FoundFile]) -> DataFrame:
        # Without mergeSchema Spark takes one file's columns for all and drops the others' silently.
        reader = self.spark.read.format("parquet").options(mergeSchema="true", **self.source.options)
        return reader.load(locations(files))
