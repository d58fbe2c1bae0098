"""The rows of a table as a frame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from esker.engine.iceberg.table import Table
from esker.engine.session import Engine


def pinned_rows(engine: Engine, present: Table) -> DataFrame:
    """Return a table's rows at its newest snapshot: the same ones, however often they are read."""
    reader, snapshot = engine.spark.read, present.snapshot
    # A snapshot has the columns of its time: where others have come since, the table itself is read.
    if snapshot is not None and snapshot.schema_id == present.schema_id:
        reader = reader.option("versionAsOf", str(snapshot.id))
    return reader.table(present.id.sql)
