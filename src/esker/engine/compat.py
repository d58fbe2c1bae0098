"""Spark interfaces that are newer than 3.5, in one file: some platforms still run 3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows as an Arrow table in this process (Spark ≥ 4.0)."""
    return frame.toArrow()


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a frame (Spark ≥ 4.0)."""
    return spark.createDataFrame(table)


def try_cast(value: Column, kind: str) -> Column:
    """Return a value as another type; null where it is none (Spark ≥ 4.0)."""
    return value.try_cast(kind)
