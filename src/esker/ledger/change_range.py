"""A part of a table's change log, between two points of the table's history."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId, find_table
from esker.engine.session import Engine
from esker.errors import ChangesForgotten, NoChangeLog, UnknownPoint
from esker.ledger.change_log import CHANGESET, COMMITTED_AT
from esker.ledger.outbox import drain
from esker.ledger.point import Point, is_changeset, read_point
from esker.ledger.retention import Retained
from esker.ledger.side_table import LOG, SideTable

__all__ = ["Point", "change_log_of", "changes_frame"]


def changes_frame(
    engine: Engine, table: TableId, since: Point | None, until: Point | None
) -> tuple[DataFrame, int, int]:
    """Return the changes as a frame, and the changesets between which they lie.

    Raises NoChangeLog, UnknownPoint and ChangesForgotten.
    """
    engine.open_catalog(table.catalog)
    if find_table(engine, table) is None:
        raise NoChangeLog(str(table), "there is no such table")
    attempt = Attempt(engine, table)
    side = change_log_of(attempt, table)
    # A run that was killed may owe changes: they are appended first.
    reached = drain(engine, table, attempt.properties)[LOG]
    log = engine.spark.table(side.id.sql)
    retained = Retained.of(Attempt(engine, side.id)).first
    first = _changeset(engine, attempt, log, since) if since is not None else retained - 1
    if first > reached:
        # Nothing would be told to whoever has read changes that are no longer there.
        raise UnknownPoint.ahead(str(since), str(table), reached)
    last = min(_changeset(engine, attempt, log, until), reached) if until is not None else reached
    if first < retained - 1 or last < retained - 1:
        raise ChangesForgotten(str(table), min(first + 1, last), retained)
    inside = (F.col(CHANGESET) > first) & (F.col(CHANGESET) <= last)
    return log.where(inside), first, last


def change_log_of(attempt: Attempt, table: TableId) -> SideTable:
    """Return a table's change log, or raise NoChangeLog."""
    side = SideTable.registered(attempt.properties, LOG, table.catalog)
    if side is None:
        raise NoChangeLog(str(table), "no keyed pipeline with `changes: on` has published into it")
    return side


def _changeset(engine: Engine, attempt: Attempt, log: DataFrame, point: Point) -> int:
    """Return the last changeset at a point."""
    there = read_point(point)
    if isinstance(there, datetime):
        with explained("cannot read the change log", engine.log):
            found = log.where(F.col(COMMITTED_AT) <= F.lit(there)).agg(F.max(CHANGESET)).first()
        return int(found[0]) if found is not None and found[0] is not None else 0
    if is_changeset(there):
        return there
    snapshot = attempt.snapshot(there)
    if snapshot is not None and attempt.descends(snapshot.id, snapshot.sequence) is False:
        raise UnknownPoint.left(str(point))
    found_there = attempt.summary_at(there, "esker.changeset")
    if found_there is None:
        raise UnknownPoint(str(point), "the table has no such snapshot, or it says nothing of a changeset")
    return int(found_there)
