"""A SELECT on the rows of a frame, where a row on which it fails ends nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import column_of, frame_of
from esker.engine.iceberg.java import each
from esker.engine.row_by_row import NotRowByRow, selected
from esker.engine.session import Engine
from esker.engine.tried_columns import FAILED, GIVEN, WANTED
from esker.project.types import quoted

_TRIED = "_esker_tried"
_TOLD = 200


@dataclass(frozen=True)
class _Attempt:
    """An expression whose value is null where it failed, and otherwise a structure with the value inside."""

    expression: Any
    place: str
    told: str

    @property
    def is_failed(self) -> Column:
        return F.col(self.place).isNull()

    @property
    def value(self) -> Column:
        return F.col(f"{self.place}.value")


def tried(
    engine: Engine, rows: DataFrame, sql: str, beside: Sequence[str], given: Sequence[str]
) -> DataFrame:
    """Return what `selected` does, of all rows: with WANTED, FAILED, and the columns `beside` as they were.

    GIVEN shows the columns `given`. Nothing that is computed counts of rows that are not wanted, or failed.
    Raises NotRowByRow, and Spark's own errors for a statement that is wrong for all rows alike.
    """
    spark: Any = engine.spark
    catalyst = spark._jvm.org.apache.spark.sql.catalyst
    made: Any = selected(engine, rows, sql, beside)
    # Aliases may build on aliases, and the columns beside had other names for a while.
    plan = catalyst.optimizer.CollapseProject.apply(made._jdf.queryExecution().analyzed(), True)
    columns, source = list(each(plan.projectList())), plan.child()
    where = None
    if _kind(source) == "Filter":
        where = _Attempt(source.condition(), _TRIED, _told("WHERE", source.condition()))
        source = source.child()
    if _kind(source) != "SubqueryAlias":
        raise NotRowByRow(_kind(source))
    attempts = {
        str(column.name()): _Attempt(column.child(), f"{_TRIED}{place}", _told(column.name(), column.child()))
        for place, column in enumerate(columns)
        if _kind(column) == "Alias"
    }

    def made_by(attempt: _Attempt) -> Column:
        named = [name, attempt.expression]
        inside = catalyst.expressions.CreateNamedStruct(spark._jvm.PythonUtils.toSeq(named))
        # Spark computes what several columns have in common before all of them, where nobody would catch it;
        # but it does not look into branches that it may never take.
        guarded = column_of(spark, catalyst.expressions.TryEval(inside))
        return F.when(F.monotonically_increasing_id() >= 0, guarded).alias(attempt.place)

    name = spark._jsparkSession.sessionState().sqlParser().parseExpression("'value'")
    every = [*attempts.values(), *([where] if where is not None else [])]
    rows = frame_of(spark, source).select("*", *map(made_by, every))
    failed = F.concat_ws("; ", *(F.when(each.is_failed, each.told) for each in attempts.values()))
    failed = F.nullif(failed, F.lit(""))
    wanted = F.lit(True)
    if where is not None:
        wanted = F.coalesce(where.value, F.lit(False))
        failed = F.when(where.is_failed, where.told).when(wanted, failed)
    return rows.select(
        *(
            attempts[name].value.alias(name) if name in attempts else F.col(quoted(name))
            for name in (str(column.name()) for column in columns)
        ),
        wanted.alias(WANTED),
        failed.alias(FAILED),
        F.when(failed.isNotNull(), F.to_json(F.struct(*map(quoted, given)))).alias(GIVEN),
    )


def _told(name: str, expression: Any) -> str:
    text = str(expression.sql())
    return f"{name}: {text if len(text) <= _TOLD else text[: _TOLD - 1] + '…'} cannot be computed"


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
