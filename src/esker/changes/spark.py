"""A table's change log, read with Spark. What a killed run owes to it is appended first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.changes.log_files import LogFiles
from esker.changes.since import ReadableLog
from esker.engine.compat import snapshot_frame
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.engine.iceberg.table import TableId, find_table
from esker.engine.session import Engine
from esker.errors import NoChangeLog, UnknownPoint
from esker.ledger.change_log import CHANGESET, COMMITTED_AT, RUN
from esker.ledger.entry import read_head
from esker.ledger.outbox import drain
from esker.ledger.owed import gaps_in, logged_in
from esker.ledger.point import Point, is_changeset, read_point
from esker.ledger.retention import Retained
from esker.ledger.side_table import LOG, SideTable


@dataclass(frozen=True)
class SparkLog(ReadableLog):
    """A table with its change log, both as they were when they were opened."""

    engine: Engine
    id: TableId
    """The log's."""
    of: TableId
    table: Attempt
    log: Attempt

    @classmethod
    def open(cls, engine: Engine, table: TableId) -> SparkLog:
        """Open the change log of a table, or raise NoChangeLog."""
        engine.open_catalog(table.catalog)
        if find_table(engine, table) is None:
            raise NoChangeLog(str(table), "there is no such table")
        attempt = Attempt(engine, table)
        side = SideTable.registered(attempt.properties, LOG, table.catalog)
        if side is None:
            raise NoChangeLog(str(table), "no keyed pipeline with `changes: on` has published into it")
        # A run that was killed may owe changes: they are appended first.
        drain(engine, table, attempt.properties)
        return cls(engine, side.id, table, attempt, Attempt(engine, side.id))

    @property
    def name(self) -> str:
        return str(self.of)

    @property
    def uuid(self) -> str:
        return self.table.uuid

    @property
    def first(self) -> int:
        return Retained.of(self.log).first

    @cached_property
    def reached(self) -> int:
        return logged_in(self.log.properties)

    @property
    def published(self) -> int:
        head = read_head(self.table.properties)
        return head.changeset if head is not None else 0

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        return gaps_in(self.log.properties)

    def descends(self, snapshot: int, sequence: int) -> bool | None:
        return self.log.descends(snapshot, sequence)

    def changeset_at(self, point: Point) -> int:
        there = read_point(point)
        if isinstance(there, datetime):
            with explained("cannot read the change log", self.engine.log):
                found = self.rows().where(F.col(COMMITTED_AT) <= F.lit(there)).agg(F.max(CHANGESET)).first()
            return int(found[0]) if found is not None and found[0] is not None else 0
        if is_changeset(there):
            return there
        snapshot = self.table.snapshot(there)
        if snapshot is not None and self.table.descends(snapshot.id, snapshot.sequence) is False:
            raise UnknownPoint.left(str(point))
        found_there = self.table.summary_at(there, "esker.changeset")
        if found_there is None:
            raise UnknownPoint(
                str(point), "the table has no such snapshot, or it says nothing of a changeset"
            )
        return int(found_there)

    def snapshot_of(self, changeset: int) -> tuple[int, int] | None:
        if 0 < changeset == self.reached:
            number = self.log.current  # also where others put files together since
        else:
            number = self.log.last_snapshot_with("esker.changeset", str(changeset))
        found = self.log.snapshot(number) if number is not None else None
        return (found.id, found.sequence) if found is not None else None

    def run_of(self, changeset: int) -> str | None:
        files = self.files.between(changeset - 1, changeset)
        if not files:
            return None
        if can_read(self.log.files, self.log.schema, files):
            rows = live_rows(self.log.files, self.log.schema, files, (CHANGESET, RUN))
            runs = rows.filter(pc.equal(rows.column(CHANGESET), changeset)).column(RUN)
            return runs[0].as_py() if len(runs) else None
        with explained("cannot read the change log", self.engine.log):
            first = self.rows().where(F.col(CHANGESET) == changeset).select(RUN).first()
        return first[0] if first is not None else None

    @cached_property
    def files(self) -> LogFiles:
        """The files of the log."""
        return LogFiles(self.log.files.data, self.log.schema.ids)

    def rows(self) -> DataFrame:
        """Return all rows of the log, with all its columns; where none came since, of the one snapshot."""
        if self.log.current is not None and self.log.is_as_written:
            return snapshot_frame(self.engine.spark, self.id.sql, self.log.current)
        return self.engine.spark.table(self.id.sql)

    def changes(self, since: int, until: int) -> DataFrame:
        """Return the changes after one changeset, up to and including another."""
        return self.rows().where((F.col(CHANGESET) > since) & (F.col(CHANGESET) <= until))
