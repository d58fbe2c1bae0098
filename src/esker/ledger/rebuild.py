"""Change rows that got lost on their way to the log are made anew from the table itself.

A publish is one snapshot, built on exactly the one before it: what differs between the two is what the
batch did. So a staged file that somebody removed as an orphan costs a comparison of two snapshots, and no
change. The places of the rows in their batch are not in the table: they are numbered anew, by key.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.metadata import Snapshot
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId, find_snapshot
from esker.engine.session import Engine
from esker.errors import SideTableLost
from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW, ChangeLog
from esker.ledger.side_table import SideTable, Stamp
from esker.project.pipelines import Pipeline
from esker.project.reserved import HASH_COLUMN
from esker.project.types import quoted

_REBUILT = ("upsert", "insert_only", "sync", "replace")
_PLACE = ("_file", "_pos")


def rebuild(engine: Engine, table: TableId, log: SideTable, changeset: int, snapshot: int) -> StagedFiles:
    """Stage a changeset's rows for the log anew, or raise SideTableLost when nothing tells them any more."""
    after = _known(engine, table, log, changeset, snapshot)
    before = _known(engine, table, log, changeset, after.parent) if after.parent is not None else None
    pipeline = engine.project.pipelines.get(after.summary.get("esker.pipeline", ""))
    if pipeline is None or pipeline.mode not in _REBUILT:
        raise _lost(log, changeset, "and the pipeline that wrote it is no longer there")
    with explained(f'cannot compare two snapshots of table "{table}"', engine.log):
        now = _at(engine, table, after)
        then = _at(engine, table, before) if before is not None else now.where("false")
        rows = _changes(now, then, pipeline)
        return ChangeLog.of(engine, log.id).stage(rows, _stamp(after, changeset))


def _changes(now: DataFrame, then: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Return the changes between two snapshots, as the log keeps them."""
    keys = [quoted(name) for name in pipeline.key]
    came = now.join(then.select(*_PLACE), list(_PLACE), "left_anti")
    went = then.join(now.select(*_PLACE), list(_PLACE), "left_anti")
    # Of several rows of one key, somebody else's, the same one counts as in the comparison of a batch.
    newest = [_order(pipeline).desc_nulls_last(), F.col("_file").desc(), F.col("_pos").desc()]
    version = F.row_number().over(Window.partitionBy(*keys).orderBy(_deleted(pipeline), *newest))
    went = went.withColumn("_esker_version", version).where("_esker_version = 1")
    stored = went.select(
        *keys, F.col(HASH_COLUMN).alias(HASH_BEFORE), _deleted(pipeline).alias("_esker_was_deleted")
    )
    arrived = came.join(stored, list(pipeline.key), "left").withColumn(OP, _op(pipeline))
    arrived = arrived.where(F.col(OP).isNotNull())
    is_gone = F.col(OP) == "delete"
    arrived = arrived.withColumn(HASH_AFTER, F.when(~is_gone, F.col(HASH_COLUMN)))
    # A surplus row went, and its key is still there: that is no change.
    gone = went.join(now.select(*keys), list(pipeline.key), "left_anti").where(~_deleted(pipeline))
    gone = gone.withColumn(OP, F.lit("delete")).withColumn(HASH_BEFORE, F.col(HASH_COLUMN))
    rows = arrived.unionByName(gone, allowMissingColumns=True).withColumn(ORDER, _order(pipeline))
    place = F.row_number().over(Window.orderBy(*keys)) - 1
    return rows.withColumn(ROW, place.cast("bigint")).drop(*_PLACE)


def _op(pipeline: Pipeline) -> Expression:
    is_new = F.col("_esker_was_deleted").isNull()
    other = F.coalesce(F.col(HASH_BEFORE) != F.col(HASH_COLUMN), F.lit(True))
    return (
        F.when(_deleted(pipeline), "delete")
        .when(is_new, "insert")
        .when(F.col("_esker_was_deleted"), "undelete")
        .when(other, "update")
    )


def _deleted(pipeline: Pipeline) -> Expression:
    if not pipeline.keeps_deleted:
        return F.lit(False)
    return F.coalesce(F.col(quoted(pipeline.deleted_column)), F.lit(False))


def _order(pipeline: Pipeline) -> Expression:
    return F.lit(None) if pipeline.order_by is None else F.col(quoted(pipeline.order_by))


def _at(engine: Engine, table: TableId, snapshot: Snapshot) -> DataFrame:
    frame = engine.spark.read.option("versionAsOf", str(snapshot.id)).table(table.sql)
    return frame.select("*", *_PLACE)


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
