"""A query on the project's tables as a frame, and which states of them it reads."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from esker.engine.current_catalog import current_catalog
from esker.engine.iceberg.java import each
from esker.engine.session import Engine

_WITHOUT_TABLE = ("OneRowRelation", "LocalRelation", "CTERelationRef")
"""Leaves that hold their rows themselves, or stand for a part of the query that is looked at anyway."""


def query_frame(engine: Engine, catalog: str, sql: str) -> DataFrame:
    """Return a query's rows. Names without a catalog are of this one. Raises Spark's own errors.

    In brackets: what is no query does not stand there, and nothing else is ever run.
    """
    with current_catalog(engine, catalog):
        return engine.spark.sql(f"SELECT * FROM (\n{sql}\n) AS esker_rows")


def snapshots_read(frame: DataFrame) -> dict[str, int] | None:
    """Return the snapshot of each Iceberg table that a frame reads; None if it reads anything else."""
    given: Any = frame
    plan = given._jdf.queryExecution().analyzed()
    found = {}
    # Queries within conditions are no part of the tree.
    for leaf in (leaf for part in (plan, *each(plan.subqueriesAll())) for leaf in each(part.collectLeaves())):
        kind = leaf.getClass().getSimpleName()
        if kind in _WITHOUT_TABLE:
            continue
        if kind != "DataSourceV2Relation" or leaf.table().getClass().getSimpleName() != "SparkTable":
            return None
        snapshot = leaf.table().table().currentSnapshot()
        if snapshot is not None:
            found[str(leaf.table().name())] = int(snapshot.snapshotId())
    return found
