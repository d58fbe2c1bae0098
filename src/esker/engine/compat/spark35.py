"""What Spark 4 has and 3.5 lacks, or has elsewhere, for Spark 3.5."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BooleanType

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession

_BATCH_ROWS = 10_000


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows as an Arrow table in this process."""
    rows: Any = frame
    batches = [pa.Table.from_batches([batch]) for batch in rows._collect_as_arrow()]
    schema = to_arrow_schema(frame.schema)
    return pa.concat_tables([batch.cast(schema) for batch in batches]) if batches else schema.empty_table()


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a frame. Sessions are in UTC, and so are times without a zone."""
    session: Any = spark
    schema = from_arrow_schema(table.schema)
    # Unsafe, as Spark 4: nanoseconds are cut off. All else has the same type before and after.
    batches = table.cast(to_arrow_schema(schema), safe=False).to_batches(max_chunksize=_BATCH_ROWS)
    jvm = session._jvm
    rows = session._sc._serialize_to_jvm(
        batches, ArrowStreamSerializer(), jvm.PythonSQLUtils.readArrowStreamFromFile, jvm.ArrowIteratorServer
    )
    return DataFrame(jvm.PythonSQLUtils.toDataFrame(rows, schema.json(), session._jsparkSession), session)


def try_cast(value: Column, kind: str) -> Column:
    """Return a value as another type; null where it is none."""
    context: Any = SparkContext._active_spark_context
    expressions = context._jvm.org.apache.spark.sql.catalyst.expressions
    strict = cast(Any, value.cast(kind))._jc.expr()
    mode = expressions.EvalMode.TRY()
    lenient = expressions.Cast(strict.child(), strict.dataType(), _none(context._jvm), mode)
    return _column(context, lenient)


def metadata_column(frame: DataFrame, name: str) -> Column:
    """Return a column that Spark hides: where a row comes from."""
    own: Any = Column
    return cast(Column, own(cast(Any, frame)._jdf.metadataColumn(name)))


def snapshot_frame(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    """Return a table's rows as of a snapshot. By the parser: the reader's own option is not heeded here."""
    session: Any = spark
    parser = session._jsparkSession.sessionState().sqlParser()
    return frame_of(spark, parser.parsePlan(f"SELECT * FROM {table} VERSION AS OF {snapshot}").child())


def observed_row(observation: Observation, watched: DataFrame) -> Any:
    """Return what was observed of a frame as a row of Java's, once the frame has been through."""
    jvm: Any = watched.sparkSession.sparkContext._jvm
    frame: Any = watched
    seen: Any = observation
    metrics = frame._jdf.queryExecution().analyzed().metrics()
    names = []
    schema = jvm.org.apache.spark.sql.types.StructType()
    for metric in (metrics.apply(index) for index in range(metrics.size())):
        names.append(metric.name())
        schema = schema.add(metric.name(), metric.dataType())
    # A map by now. Nothing of it may pass through Python, which makes other numbers of Java's.
    values = jvm.PythonUtils.toSeq(names).iterator().map(seen._jo.get())
    row = jvm.org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
    return row(values.toArray(jvm.scala.reflect.ClassTag.Any()), schema)


def is_valid_utf8(text: Column) -> Column:
    """Tell whether the bytes of a text are UTF-8."""
    return text.cast("binary") == make_valid_utf8(text).cast("binary")


def make_valid_utf8(text: Column) -> Column:
    """Return a text with U+FFFD in place of bytes that are no UTF-8, as Java reads them."""
    return F.decode(text.cast("binary"), "UTF-8")


def is_strict_json(text: Column) -> Column:
    """Tell whether a text is one whole JSON value, without an object that has a name twice.

    By Python: nothing in this Spark looks at names twice.
    """
    return F.udf(_strictly_parsed(), BooleanType())(F.coalesce(text, F.lit("")))


def _strictly_parsed() -> Callable[[str], bool]:
    # A function inside a function goes to the executors as it is: Esker need not be installed there.
    def once(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError

    def refused(word: str) -> None:
        raise ValueError(word)

    def is_strict(text: str) -> bool:
        try:
            # Numbers stay texts: Python makes none of more than some thousand digits.
            json.loads(text, object_pairs_hook=once, parse_constant=refused, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            return False
        return True

    return is_strict


def try_url_decode(text: Column) -> Column:
    """Return a text with `%2F` and the like decoded; null where it is written wrongly."""
    return F.when(text.rlike("^(?:[^%]|%[0-9A-Fa-f]{2})*$"), F.url_decode(text))


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a plan of Spark's parser as a frame."""
    session: Any = spark
    dataset = session.sparkContext._jvm.org.apache.spark.sql.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def column_of(spark: SparkSession, expression: Any) -> Column:
    """Return an expression of Spark's parser as a column."""
    return _column(spark.sparkContext, expression)


def silence_queries() -> None:
    """Do nothing: this PySpark prints no failed queries."""


def resolve_jars(
    jvm: Any, coordinates: str, into: str, repositories: str | None, settings_file: str | None
) -> Any:
    """Fetch jars by coordinate, without what they depend on, and return their paths as a list of Scala's."""
    maven = jvm.org.apache.spark.deploy.SparkSubmitUtils
    none, some = _none(jvm), jvm.scala.Some
    further = none if repositories is None else some(repositories)
    if settings_file is not None:
        settings = maven.loadIvySettings(settings_file, further, some(into))
    else:
        settings = maven.buildIvySettings(further, some(into), False)
    nothing = getattr(maven, "resolveMavenCoordinates$default$5")()
    return maven.resolveMavenCoordinates(coordinates, settings, none, False, nothing, False)


def _none(jvm: Any) -> Any:
    return getattr(getattr(jvm.scala, "None$"), "MODULE$")


def _column(context: Any, expression: Any) -> Column:
    own: Any = Column
    return cast(Column, own(context._jvm.org.apache.spark.sql.Column(expression)))
