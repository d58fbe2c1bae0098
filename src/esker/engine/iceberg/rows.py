"""The rows of a table as a frame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.table import Table
from esker.engine.session import Engine


def pinned_rows(engine: Engine, present: Table) -> DataFrame:
    """Return a table's rows at its newest snapshot: the same ones, however often they are read."""
    snapshot = present.snapshot
    # A snapshot has the columns of its time: where others have come since, the table itself is read.
    if snapshot is not None and snapshot.schema_id == present.schema_id:
        return snapshot_frame(engine.spark, present.id.sql, snapshot.id)
    return engine.spark.read.table(present.id.sql)
