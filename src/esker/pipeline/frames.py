"""What can be read without Spark, as frames for those who have it. Imported where PyIceberg is."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table.snapshots import Snapshot
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.changes.ranges import AppendedRows, ChangeRange, LoggedChanges
from esker.changes.spark import SparkLog
from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import TableId, load
from esker.engine.session import Engine
from esker.ledger.change_columns import CHANGESET, COMMITTED_AT, OP, PIPELINE, RUN
from esker.pipeline.conditions import as_condition
from esker.project.types import quoted
from esker.reading.appended import facts_of
from esker.reading.scan import TableScan
from esker.reading.tasks import ReindexTask

_FACTS = (
    f"_esker_path string, {CHANGESET} bigint, {OP} string, {PIPELINE} string, {RUN} string, "
    f"{COMMITTED_AT} timestamp"
)


def frame_of_changes(engine: Engine, table: TableId, changes: ChangeRange) -> DataFrame:
    """Return a range of changes as a frame. What is owed to the change log is appended to it first.

    Raises ChangesDiverged when other changes have these numbers by now.
    """
    if not isinstance(changes, AppendedRows):
        assert isinstance(changes, LoggedChanges)
        log = SparkLog.open(engine, table)
        log.check_same(changes.end)
        log.check_range(changes.since, changes.until)
        return log.changes(changes.since, changes.until)
    engine.open_catalog(table.catalog)
    facts = [
        (part.path, *facts_of(each)) for each in changes.snapshots for part in changes.reader.files(each)
    ]
    told = engine.spark.createDataFrame(facts, _FACTS)
    rows = _added(engine, table, changes.snapshots)
    columns = [F.col(quoted(name)) for name in changes.schema.names]
    return rows.join(F.broadcast(told), F.col("_file") == F.col("_esker_path")).select(*columns)


def _added(engine: Engine, table: TableId, snapshots: Sequence[Snapshot]) -> DataFrame:
    """Return the rows that snapshots added, one behind the other, and the files that they lie in."""
    if not snapshots:
        return engine.spark.table(table.sql).where("false").select("*", "_file")
    first, last = snapshots[0], snapshots[-1]
    before = first.parent_snapshot_id
    if before is None and first is last:
        return snapshot_frame(engine.spark, table.sql, first.snapshot_id).select("*", "_file")
    span = {"start-snapshot-id": str(before or first.snapshot_id), "end-snapshot-id": str(last.snapshot_id)}
    found = engine.spark.read.options(**span).table(table.sql).select("*", "_file")
    if before is not None:
        return found
    # Iceberg begins behind a snapshot, and not with the first.
    begun = snapshot_frame(engine.spark, table.sql, first.snapshot_id).select("*", "_file")
    return found.unionByName(begun, allowMissingColumns=True)


def frame_of_scan(engine: Engine, scan: TableScan) -> DataFrame:
    """Return the rows of a scan as a frame."""
    table = TableId(scan.table.catalog, scan.table.name)
    if scan.snapshot_id is None:
        engine.open_catalog(table.catalog)
        found = engine.spark.table(table.sql)
    else:
        found = _at(engine, table, scan.snapshot_id)
    if scan.row_filter is not None:
        found = found.where(as_condition(scan.row_filter))
    return found.select(*(F.col(quoted(name)) for name in scan.columns))


def frame_of_task(engine: Engine, task: ReindexTask) -> DataFrame:
    """Return the rows of a task as a frame."""
    found = _at(engine, TableId(task.catalog, task.table), task.snapshot_id)
    names = [F.col(quoted(name)) for name in task.columns or found.columns]
    found = found.where(F.col("_file").isin(task.files))
    if task.mark is not None:
        found = found.where(~F.coalesce(F.col(quoted(task.mark)), F.lit(False)))
    if task.current is not None:
        found = found.where(F.col(quoted(task.current)))
    if task.row_filter is not None:
        found = found.where(as_condition(task.row_filter))
    return found.select(*names)


def _at(engine: Engine, table: TableId, snapshot: int) -> DataFrame:
    """Return the rows of a snapshot, with the file that each lies in."""
    engine.open_catalog(table.catalog)
    present = load(engine, table)
    if present.snapshot is not None and present.snapshot.id == snapshot:
        return pinned_rows(engine, present)
    return snapshot_frame(engine.spark, table.sql, snapshot)
