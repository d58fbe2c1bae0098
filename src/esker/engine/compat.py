"""Spark interfaces that are newer than 3.5, in one file: some platforms still run 3.5."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows as an Arrow table in this process (Spark ≥ 4.0)."""
    return frame.toArrow()


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a frame (Spark ≥ 4.0)."""
    return spark.createDataFrame(table)


def let_go(checkpointed: DataFrame) -> None:
    """Give up what `localCheckpoint` keeps: Spark itself does so only when Java happens to tidy up."""
    frame: Any = checkpointed
    with suppress(Py4JError):  # a Java that ended keeps nothing
        frame._jdf.queryExecution().logical().rdd().unpersist(False)


def try_cast(value: Column, kind: str) -> Column:
    """Return a value as another type; null where it is none (Spark ≥ 4.0)."""
    return value.try_cast(kind)


def is_valid_utf8(text: Column) -> Column:
    """Tell whether the bytes of a text are UTF-8 (Spark ≥ 4.0)."""
    return F.is_valid_utf8(text)


def make_valid_utf8(text: Column) -> Column:
    """Return a text with U+FFFD in place of bytes that are no UTF-8 (Spark ≥ 4.0)."""
    return F.make_valid_utf8(text)


def parsed_json(text: Column) -> Column:
    """Return JSON as a variant; null where it is none, or names a key of an object twice (Spark ≥ 4.0)."""
    return F.try_parse_json(text)


def part_of_json(variant: Column, path: str) -> Column:
    """Return what stands at a path of a variant, as text; null where nothing does (Spark ≥ 4.0)."""
    return F.try_variant_get(variant, path, "string")


def try_url_decode(text: Column) -> Column:
    """Return a text with `%2F` and the like decoded; null where it is written wrongly (Spark ≥ 4.0)."""
    return F.try_url_decode(text)


def arrow_schema_as_spark(schema: pa.Schema) -> dict[str, Any]:
    """Return an Arrow schema as the JSON value of Spark's (its private module, the same since 3.3)."""
    value: dict[str, Any] = from_arrow_schema(schema).jsonValue()
    return value


def arrow_schema(schema: dict[str, Any]) -> pa.Schema:
    """Return Spark's schema, given as its JSON value, as an Arrow schema (from the same module)."""
    return to_arrow_schema(StructType.fromJson(schema))


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a plan of Spark's parser as a frame (its class is elsewhere before 4.0)."""
    session: Any = spark
    dataset = session.sparkContext._jvm.org.apache.spark.sql.classic.Dataset
    return ClassicFrame(dataset.ofRows(session._jsparkSession, plan), session)


def column_of(spark: SparkSession, expression: Any) -> Column:
    """Return an expression of Spark's parser as a column (Spark ≥ 4.0)."""
    context: Any = spark.sparkContext
    return ClassicColumn(context._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def silence_queries() -> None:
    """Keep PySpark from printing failed queries (Spark ≥ 4.0): people get them as errors of ours."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
