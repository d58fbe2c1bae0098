"""Interfaces of Spark 4 that 3.5 lacks, or has elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows as an Arrow table in this process."""
    return frame.toArrow()


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a frame."""
    return spark.createDataFrame(table)


def try_cast(value: Column, kind: str) -> Column:
    """Return a value as another type; null where it is none."""
    return value.try_cast(kind)


def metadata_column(frame: DataFrame, name: str) -> Column:
    """Return a column that Spark hides: where a row comes from."""
    return frame.metadataColumn(name)


def snapshot_frame(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    """Return a table's rows as of a snapshot."""
    return spark.read.option("versionAsOf", str(snapshot)).table(table)


def static_call(jvm: Any, owner: str, method: str, kind: Any, arguments: Any) -> Any:
    """Return an expression that calls a static method of a class of Java's, which never returns null."""
    invoke = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
    place, none = jvm.java.lang.Class.forName(owner), jvm.PythonUtils.toSeq([])
    return invoke(
        place,
        kind,
        method,
        arguments,
        none,
        True,
        False,
        True,
        getattr(getattr(jvm.scala, "None$"), "MODULE$"),
    )


def rows_at_hand(jvm: Any, rows: Any, schema: Any) -> Any:
    """Return rows of Spark's own that are here, a list of Java's, as a plan."""
    attributes = jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema)
    nothing = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
    return relation(attributes, jvm.PythonUtils.toSeq(rows), False, nothing)


def is_valid_utf8(text: Column) -> Column:
    """Tell whether the bytes of a text are UTF-8."""
    return F.is_valid_utf8(text)


def rebalanced(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Bring rows with equal values together, in parts of an even size."""
    return frame.hint("rebalance", *names)


def make_valid_utf8(text: Column) -> Column:
    """Return a text with U+FFFD in place of bytes that are no UTF-8."""
    return F.make_valid_utf8(text)


def is_rounded_json(text: Column) -> Column:
    """Tell whether numbers of a JSON text lose digits when they are read as text: never, in this Spark."""
    return F.lit(False)


def is_strict_json(text: Column) -> Column:
    """Tell whether a text is one whole JSON value, without an object that has a name twice.

    It is put into a list whose last value nobody can guess. Only if it is one value, that last value is the
    second: Spark's parsers read one value and never look what follows.
    """
    last = secrets.token_hex(8)
    # The variant is used once: Spark would parse the text anew for each use.
    variant = F.try_parse_json(F.concat(F.lit("["), text, F.lit(f',"{last}"]')))
    return F.coalesce(F.try_variant_get(variant, "$[1]", "string") == last, F.lit(False))


def try_url_decode(text: Column) -> Column:
    """Return a text with `%2F` and the like decoded; null where it is written wrongly."""
    return F.try_url_decode(text)


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a plan of Spark's parser as a frame."""
    session: Any = spark
    dataset = session.sparkContext._jvm.org.apache.spark.sql.classic.Dataset
    return ClassicFrame(dataset.ofRows(session._jsparkSession, plan), session)


def column_of(spark: SparkSession, expression: Any) -> Column:
    """Return an expression of Spark's parser as a column."""
    context: Any = spark.sparkContext
    return ClassicColumn(context._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


CALL = "Call"
"""The kind of plan that calls a procedure."""


def procedure_of(call: Any) -> Any:
    """Return the parts of the name of the procedure that a plan calls, as a list of Scala's."""
    return call.procedure().nameParts()


def value_of_argument(argument: Any) -> Any:
    """Return what a call gives for an argument, as an expression."""
    is_named = str(argument.getClass().getSimpleName()) == "NamedArgumentExpression"
    return argument.value() if is_named else argument


def silence_queries() -> None:
    """Keep PySpark from printing failed queries: people get them as errors of ours."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def resolve_jars(
    jvm: Any, coordinates: str, into: str, repositories: str | None, settings_file: str | None
) -> Any:
    """Fetch jars by coordinate, without what they depend on, and return their paths as a list of Scala's."""
    maven = jvm.org.apache.spark.util.MavenUtils
    none, some = getattr(getattr(jvm.scala, "None$"), "MODULE$"), jvm.scala.Some
    further = none if repositories is None else some(repositories)
    stream = jvm.java.lang.System.err
    if settings_file is not None:
        settings = maven.loadIvySettings(settings_file, further, some(into), stream)
    else:
        settings = maven.buildIvySettings(further, some(into), False, stream)
    nothing = getattr(maven, "resolveMavenCoordinates$default$5")()
    return maven.resolveMavenCoordinates(coordinates, settings, none, False, nothing, False, stream)
