"""Change rows that got lost on their way to the log are made anew from the table itself.

A publish is one snapshot, built on exactly the one before it: what differs between the two is what the
batch did. So a staged file that somebody removed as an orphan costs a comparison of two snapshots, and no
change. The places of the rows in their batch are not in the table: they are numbered anew, by key.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import snapshot_frame
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.metadata import Snapshot
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId, find_snapshot
from esker.engine.session import Engine
from esker.errors import SideTableLost
from esker.ledger.change_log import CHANGESET, ChangeLog
from esker.ledger.difference import PLACE, changes_between
from esker.ledger.side_table import DELETED_AT, DELETES, SideTable, Stamp


def rebuild(engine: Engine, table: TableId, log: SideTable, changeset: int, snapshot: int) -> StagedFiles:
    """Stage a changeset's rows for the log anew, or raise SideTableLost when nothing tells them any more."""
    after = _known(engine, table, log, changeset, snapshot)
    before = _known(engine, table, log, changeset, after.parent) if after.parent is not None else None
    pipeline = engine.project.pipelines.get(after.summary.get("esker.pipeline", ""))
    if pipeline is None or not pipeline.is_keyed:
        raise _lost(log, changeset, "and the pipeline that wrote it is no longer there")
    with explained(f'cannot compare two snapshots of table "{table}"', engine.log):
        now = _at(engine, table, after)
        then = _at(engine, table, before) if before is not None else now.where("false")
        stamp = _stamp(after, changeset)
        rows = changes_between(then, now, pipeline, _remembered(engine, table, stamp, pipeline.late))
        return ChangeLog.of(engine, log.id).stage(rows, stamp)


def _remembered(engine: Engine, table: TableId, stamp: Stamp, late: timedelta) -> DataFrame | None:
    """Return the deletes that no row of the table told a batch of, if there is a memory of them."""
    memory = SideTable.registered(Attempt(engine, table).properties, DELETES, table.catalog)
    if memory is None:
        return None
    counts = (F.col(DELETED_AT) >= F.lit(stamp.moment - late)) & (F.col(CHANGESET) < stamp.changeset)
    return engine.spark.table(memory.id.sql).where(counts)


def _at(engine: Engine, table: TableId, snapshot: Snapshot) -> DataFrame:
    return snapshot_frame(engine.spark, table.sql, snapshot.id).select("*", *PLACE)


def _known(engine: Engine, table: TableId, log: SideTable, changeset: int, snapshot: int) -> Snapshot:
    found = find_snapshot(engine, table, snapshot)
    if found is None:
        raise _lost(log, changeset, f"and snapshot {snapshot} of the table, which would tell it, is expired")
    return found


def _stamp(snapshot: Snapshot, changeset: int) -> Stamp:
    told = snapshot.summary
    moment = told.get("esker.moment")
    return Stamp(
        pipeline=told["esker.pipeline"],
        run=told["esker.run"],
        batch=told.get("esker.batch", ""),
        changeset=changeset,
        moment=datetime.fromisoformat(moment) if moment else snapshot.committed_at,
    )


def _lost(log: SideTable, changeset: int, why: str) -> SideTableLost:
    return SideTableLost(str(log.id), f"the staged file of changeset {changeset} is gone, {why}")
