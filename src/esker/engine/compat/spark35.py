"""What Spark 4 has and 3.5 lacks, or has elsewhere, for Spark 3.5."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BooleanType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def static_call(jvm: Any, owner: str, method: str, kind: Any, arguments: Any) -> Any:
    """Return an expression that calls a static method of a class of Java's, which never returns null."""
    invoke = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
    place, none = jvm.java.lang.Class.forName(owner), jvm.PythonUtils.toSeq([])
    anything = jvm.org.apache.spark.sql.types.ObjectType(jvm.java.lang.Class.forName("java.lang.Object"))
    found = invoke(place, anything, method, arguments, none, True, False, True)
    # What the method returns is not cast by the call itself, so that the code would not compile.
    return jvm.org.apache.spark.sql.catalyst.expressions.objects.ValidateExternalType(found, kind, kind)


def rows_at_hand(jvm: Any, rows: Any, schema: Any) -> Any:
    """Return rows of Spark's own that are here, a list of Java's, as a plan."""
    attributes = jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema)
    relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
    return relation(attributes, jvm.PythonUtils.toSeq(rows), False)


def rebalanced(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Bring rows with equal values together, in parts of an even size. The hint wants columns here."""
    rows: Any = frame
    context: Any = rows.sparkSession.sparkContext
    columns: list[Any] = [F.col(name) for name in names]
    hint = context._jvm.PythonUtils.toSeq([column._jc.expr() for column in columns])
    return DataFrame(rows._jdf.hint("rebalance", hint), rows.sparkSession)


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


def is_rounded_json(text: Column) -> Column:
    """Tell whether numbers of a JSON text lose digits when they are read as text: those of no double do."""
    return F.udf(_rounded(), BooleanType())(F.coalesce(text, F.lit("")))


def _rounded() -> Callable[[str], bool]:
    def exact(number: str) -> None:
        if Decimal(number) != Decimal(repr(float(number))):
            raise OverflowError(number)

    def is_rounded(text: str) -> bool:
        try:
            json.loads(text, parse_float=exact, parse_int=str)
        except ArithmeticError:
            return True  # one that is not exact, or whose exponent is beyond all that Python's decimals have
        except (ValueError, RecursionError):
            return False  # no JSON: others tell
        return False

    return is_rounded


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


CALL = "CallStatement"
"""The kind of plan that calls a procedure: Iceberg's parser makes it, as this Spark has none."""


def procedure_of(call: Any) -> Any:
    """Return the parts of the name of the procedure that a plan calls, as a list of Scala's."""
    return call.name()


def value_of_argument(argument: Any) -> Any:
    """Return what a call gives for an argument, as an expression."""
    return argument.expr()


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
