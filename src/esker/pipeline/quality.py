"""The quality of a table over time: what its checks found, at a point and beside another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId, exists
from esker.engine.session import Engine
from esker.errors import NoQuality, UnknownPoint
from esker.pipeline.tables import quality_of


@dataclass(frozen=True)
class Figure:
    """One metric: its newest value at a point, and at an earlier one."""

    metric: str
    kind: str
    value: float | None
    passed: bool | None
    measured_at: datetime
    snapshot: int
    changeset: int
    earlier: float | None = None

    @property
    def change(self) -> float | None:
        if self.value is None or self.earlier is None:
            return None
        return self.value - self.earlier

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "kind": self.kind,
            "value": self.value,
            "passed": self.passed,
            "measured_at": self.measured_at.isoformat(),
            "snapshot": self.snapshot,
            "changeset": self.changeset,
            "earlier": self.earlier,
            "change": self.change,
        }


def read_quality(
    engine: Engine,
    table: TableId,
    as_of: str | None = None,
    beside: str | None = None,
    *,
    held: bool = False,
) -> list[Figure]:
    """Return what the checks of a table found last, at a point and beside another one.

    Points are changesets, or times (UTC unless they say). With `held`, figures of batches that were held.
    Raises NoQuality or UnknownPoint.
    """
    engine.open_catalog(table.catalog)
    history = quality_of(engine.project, table)
    if not exists(engine, history):
        raise NoQuality(str(table))
    rows = engine.spark.table(history.sql)
    if "held" in rows.columns:  # not in histories that were begun before batches left theirs
        rows = rows.where(F.coalesce(F.col("held"), F.lit(False)) == held)
    with explained(f'cannot read the quality of "{table}"', engine.log):
        now = _newest(rows, as_of)
        then = {(row["kind"], row["metric"]): row["value"] for row in _newest(rows, beside)} if beside else {}
    return [
        Figure(
            row["metric"],
            row["kind"],
            row["value"],
            row["passed"],
            row["measured_at"],
            row["snapshot"],
            row["changeset"],
            then.get((row["kind"], row["metric"])),
        )
        for row in now
    ]


def _newest(rows: DataFrame, point: str | None) -> list[Any]:
    if point is not None:
        rows = rows.where(_upto(point))
    latest = Window.partitionBy("kind", "metric").orderBy(F.desc("changeset"), F.desc("measured_at"))
    found = rows.withColumn("_rank", F.row_number().over(latest)).where("_rank = 1")
    order = F.expr("array_position(array('table', 'audit', 'rule'), kind)")
    return found.orderBy(order, "metric").collect()


def _upto(point: str) -> Any:
    if point.isdigit():
        return F.col("changeset") <= int(point)
    try:
        moment = datetime.fromisoformat(point)
    except ValueError:
        raise UnknownPoint(point, "write a changeset, or a time: 2026-11-03 or 2026-11-03T14:00") from None
    return F.col("measured_at") <= F.lit(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
