"""The changes of a table that is loaded by key, from its change log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.changes.since import LogPosition
from esker.changes.spark import SparkLog
from esker.deliver.feed import CHANGE, Feed, Step, Subscription, wanted_ids, with_ids
from esker.engine.failures import explained
from esker.engine.iceberg.file_frame import SnapshotFiles
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import load
from esker.engine.session import Engine
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.ledger.consumer_tags import move_tag
from esker.ledger.entry import read_head
from esker.ledger.offsets import Offset
from esker.project.types import quoted


class ChangeFeed(Feed):
    """Reads a change log. What a killed run owes to it is appended first."""

    def __init__(self, engine: Engine, subscription: Subscription) -> None:
        super().__init__(engine, subscription)
        table = subscription.table
        load(engine, table)  # or TableNotFound
        self._changes_of = SparkLog.open(engine, table)
        self.log = self._changes_of.id
        self._table, self._log = self._changes_of.table, self._changes_of.log
        subscription.check_ids(self._table.schema.arrow)
        self._reached = self._changes_of.reached

    def head(self) -> Offset:
        return self._at(self._reached)

    def pinned(self) -> tuple[SnapshotId | None, Offset]:
        # The head of the very metadata that has the snapshot: the log may have gone on since.
        head = read_head(self._table.properties)
        return self._table.current, self._at(head.changeset if head is not None else 0)

    def placed(
        self, rows: DataFrame, files: Sequence[FileEntry], offset: Offset, *, newest: bool
    ) -> DataFrame:
        own = self.subscription
        live = own.live(rows)
        return live.select(
            F.lit(offset.changeset).cast("bigint").alias(CHANGESET),
            F.lit("insert").alias(OP),
            F.lit(0).cast("bigint").alias(ROW),
            *(quoted(name) for name in live.columns if own.is_shown(name)),
        )

    def standing(self, offset: Offset) -> DataFrame:
        rows = pinned_rows(self.engine, load(self.engine, self.subscription.table))
        return self.placed(rows, (), offset, newest=True).withColumn(OP, F.lit("update"))

    def beginning(self) -> Offset:
        with self.subscription.or_reindex():
            self._changes_of.check_range(0, self._reached)
        return Offset(self._table.uuid, 0, None, None, 0)

    def tagged(self, snapshot: SnapshotId) -> Offset | None:
        told = self._log.summary_at(snapshot, "esker.changeset")
        changeset = int(told) if told is not None else self._last_in(snapshot)
        return None if changeset is None else self._at(changeset)

    def _last_in(self, snapshot: SnapshotId) -> int | None:
        """Return the last changeset that a snapshot of the log has rows of; None when its files do not tell.

        Who compacts the log writes no summary of ours, and who expires it may take those before.
        """
        found = self._log.snapshot(snapshot)
        column = self._log.schema.ids[CHANGESET]
        ends = [file.highest(column) for file in self._log.files_at(found).data] if found is not None else []
        return max((end for end in ends if end is not None), default=None) if None not in ends else None

    def check(self, offset: Offset) -> None:
        with self.subscription.or_reindex():
            self._changes_of.check(
                LogPosition(offset.table, offset.changeset, offset.run, offset.snapshot, offset.sequence)
            )

    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        since = offset.changeset
        while since < self._reached:
            until = self._changes_of.files.end_of_step(since, self._reached, rows)
            yield self._step(since, until)
            since = until

    def _step(self, since: int, until: int) -> Step:
        files = self._changes_of.files.between(since, until)
        is_here = can_read(self._log.files, self._log.schema, files)
        looks = self._has_others and self._may_delete(files)

        def frame(stack: ExitStack) -> DataFrame:
            rows = self._changes(self._pinned(files, stack), since, until)
            return self._as_they_stand(rows) if looks else rows

        return Step(
            until=self._at(until),
            changesets=until - since,
            count=sum(file.records for file in files),
            rows=partial(self._rows, files, since, until) if is_here and not looks else None,
            frame=frame,
        )

    @property
    def _has_others(self) -> bool:
        """When a row goes, others of its id may stay: rows of one key that are alike, or of another key."""
        return self.subscription.pipeline.mode == "delete_insert"

    def _may_delete(self, files: Sequence[FileEntry]) -> bool:
        """Tell whether there may be deletes in files of the log."""
        column = self._log.schema.ids[OP]
        return any(file.lower.get(column, b"") <= b"delete" for file in files)

    def _as_they_stand(self, changes: DataFrame) -> DataFrame:
        """Return changes in which an id goes only when no row of it is left: that row comes in its place."""
        own, ids = self.subscription, list(self.subscription.ids)
        # As it is by now, never older than the log: of what stood then, the log would tell no more.
        table = own.live(pinned_rows(self.engine, load(self.engine, own.table)))
        gone = changes.where(F.col(OP) == "delete")
        left = table.select(*(quoted(name) for name in table.columns if own.is_shown(name)))
        left = left.join(gone.select(*map(quoted, ids)), ids, "left_semi").dropDuplicates(ids)
        # Before all that came in its changeset, which is newer than what was left.
        place = {OP: F.lit("update"), ROW: F.lit(-1).cast("bigint")}
        instead = gone.select(CHANGESET, *map(quoted, ids)).join(left, ids).withColumns(place)
        return (
            changes.where(F.col(OP) != "delete")
            .unionByName(gone.join(left.select(*map(quoted, ids)), ids, "left_anti"))
            .unionByName(instead, allowMissingColumns=True)
        )

    def _rows(self, files: Sequence[FileEntry], since: int, until: int) -> pa.Table:
        """Return changes as this process reads them."""
        rows = live_rows(self._log.files, self._log.schema, files)
        return self.subscription.changes(rows, since, until)

    def _pinned(self, files: Sequence[FileEntry], stack: ExitStack) -> DataFrame:
        """Return the log as it was looked at: what is taken out of it meanwhile has not been told yet."""
        current = self._log.current
        if current is None or self._log.is_as_written:
            return self._changes_of.rows()
        # A snapshot has the columns of its time, and others have come since: its files have them all.
        of_snapshot = SnapshotFiles(self.engine, self.log, current)
        return stack.enter_context(of_snapshot.frame(file.path for file in files))

    def _changes(self, rows: DataFrame, since: int, until: int) -> DataFrame:
        """Return changes of the log as Spark reads them."""
        rows = rows.where((F.col(CHANGESET) > since) & (F.col(CHANGESET) <= until))
        if self.subscription.pipeline.mode == "scd2":
            # A version that was put between others is no news: they know a newer one.
            current = F.coalesce(F.col(quoted(self.subscription.pipeline.versions.is_current)), F.lit(False))
            rows = rows.where((F.col(OP) == "delete") | current)
        shown = (quoted(name) for name in rows.columns if self.subscription.is_shown(name))
        return rows.select(*CHANGE, *shown)

    def newest_of(self, ids: Sequence[str], offset: Offset) -> DataFrame:
        own, names = self.subscription, [quoted(name) for name in self.subscription.ids]
        with explained(f'cannot read the changes of table "{own.table}"', self.engine.log):
            wanted = wanted_ids(self.engine, own.ids, ids)
            told = own.newest(
                with_ids(self._changes(self._changes_of.rows(), 0, offset.changeset), wanted, own.ids)
            )
            if self._has_others:
                told = self._as_they_stand(told)
            later = self._changes(self._changes_of.rows(), offset.changeset, self._reached)
            later = with_ids(later, wanted, own.ids).select(*names)
            # What the log has forgotten, and has not changed since, stands in the table as it was.
            table = with_ids(pinned_rows(self.engine, load(self.engine, own.table)), wanted, own.ids)
            kinds = {name: table.schema[name].dataType for name in own.ids}
            known = told.select(*names).unionByName(later).distinct()
            here = own.live(table).join(known, list(own.ids), "left_anti")
            here = here.select(*(quoted(name) for name in here.columns if own.is_shown(name)))
            known = known.unionByName(here.select(*names))
            gone = with_ids(
                wanted,
                known.select(*(F.col(quoted(n)).cast("string").alias(n) for n in own.ids)),
                own.ids,
                "left_anti",
            )
            gone = gone.select(*(F.col(quoted(name)).cast(kind).alias(name) for name, kind in kinds.items()))
            found = told.unionByName(
                here.withColumns({OP: F.lit("update"), ROW: F.lit(0).cast("bigint")}),
                allowMissingColumns=True,
            ).unionByName(
                gone.withColumns({OP: F.lit("delete"), ROW: F.lit(0).cast("bigint")}),
                allowMissingColumns=True,
            )
            # A newest state is as new as the offset, whenever it came about.
            return found.withColumn(CHANGESET, F.lit(offset.changeset).cast("bigint"))

    @property
    def tag_names(self) -> dict[str, SnapshotId]:
        return self._log.tags

    def keep_all(self, name: str) -> bool:
        if self._log.current is None:
            return False
        if name not in self.tag_names:
            move_tag(self.engine, self.log, name, self._log.current)
        return True

    def _at(self, changeset: int) -> Offset:
        at = self._changes_of.position(changeset)
        return Offset(at.table, changeset, at.run, at.snapshot, at.sequence)
