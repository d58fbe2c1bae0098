"""A SELECT on the rows of a frame, each for itself: what is known of a row stays beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from esker.engine.compat import frame_of
from esker.engine.iceberg.java import each, java_class
from esker.engine.session import Engine
from esker.project.types import quoted

INPUT = "input"
_BESIDE = "_esker_beside"


class NotRowByRow(ValueError):
    """A statement that is no plain SELECT from INPUT."""


def selected(
    engine: Engine, rows: DataFrame, sql: str, beside: Sequence[str], kept: str | None = None
) -> DataFrame:
    """Return what a SELECT from INPUT makes of rows, with the columns `beside` as they were.

    Rows with a value in `kept`, one of these columns, pass its WHERE. Raises NotRowByRow, and Spark's own
    errors.
    """
    spark: Any = engine.spark
    parser = spark._jsparkSession.sessionState().sqlParser()
    plan = parser.parsePlan(sql)
    if _kind(plan) != "Project":
        raise NotRowByRow(_kind(plan))
    patterns = java_class(spark._jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")
    if plan.containsPattern(patterns.WINDOW_EXPRESSION()):
        raise NotRowByRow("a function over other rows (OVER)")
    frame: Any = rows
    own = frame.alias(INPUT)._jdf.queryExecution().logical()
    condition = parser.parseExpression(f"{quoted(kept)} IS NOT NULL") if kept is not None else None
    child = _on(plan.child(), own, condition, spark)
    names = [f"{_BESIDE}{index}" for index in range(len(beside))]
    pairs = ", ".join(f"{quoted(one)} AS {other}" for one, other in zip(beside, names, strict=True))
    columns = plan.projectList()
    if beside:
        # Under other names: a * brings them along, too.
        further = parser.parsePlan(f"SELECT {pairs}").projectList()
        columns = spark._jvm.PythonUtils.toSeq([*each(columns), *each(further)])
    made = frame_of(spark, plan.copy(columns, child)).drop(*beside)
    return made.withColumnsRenamed(dict(zip(names, beside, strict=True)))


def _on(plan: Any, rows: Any, kept: Any, spark: Any) -> Any:
    """Return a plan with rows in the place of INPUT, or raise NotRowByRow."""
    match _kind(plan):
        case "UnresolvedRelation" if str(plan.name()).lower() == INPUT:
            return rows
        case "SubqueryAlias":
            return plan.copy(plan.identifier(), _on(plan.child(), rows, kept, spark))
        case "Filter":
            condition = plan.condition()
            if kept is not None:
                either = java_class(spark._jvm, "org.apache.spark.sql.catalyst.expressions.Or")
                condition = either(condition, kept)
            return plan.copy(condition, _on(plan.child(), rows, kept, spark))
    raise NotRowByRow(_kind(plan))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
