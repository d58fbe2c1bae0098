"""The quality of a table over time, read by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.lineage import line_of
from esker.engine.iceberg.table import TableId, exists
from esker.engine.session import Engine
from esker.pipeline.figures import Figure, Moment, figures
from esker.pipeline.tables import quality_of


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
    Without a contract there are no checks: the counts of rows are there all the same, from the summaries of
    the table's own snapshots. Raises NoQuality or UnknownPoint.
    """
    engine.open_catalog(table.catalog)
    history = quality_of(engine.project, table)
    rows = engine.spark.table(history.sql) if exists(engine, history) else None
    if rows is not None and "held" in rows.columns:  # not in histories that were begun before held batches
        rows = rows.where(F.coalesce(F.col("held"), F.lit(False)) == held)
    stored = (lambda point: _stored(rows, point)) if rows is not None else None
    with explained(f'cannot read the quality of "{table}"', engine.log):
        return figures(str(table), line_of(engine, table), stored, as_of, beside, held=held)


def _stored(rows: DataFrame, point: Moment | None) -> Iterator[Figure]:
    """Yield the figures that a quality history holds at a point."""
    if isinstance(point, int):
        rows = rows.where(F.col("changeset") <= point)
    elif point is not None:
        rows = rows.where(F.col("measured_at") <= F.lit(point))
    latest = Window.partitionBy("kind", "metric").orderBy(F.desc("changeset"), F.desc("measured_at"))
    ranked = rows.withColumn("_rank", F.row_number().over(latest))
    for row in ranked.where("_rank = 1").collect():
        yield Figure(
            row["metric"],
            row["kind"],
            row["value"],
            row["passed"],
            row["measured_at"].astimezone(UTC),
            row["snapshot"],
            row["changeset"],
        )
