"""The changes of a table that is only appended to: its own snapshots are the log.

Also rows that others append are delivered. A row's changeset is the sequence number of the snapshot that
added it: others' snapshots have no changeset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from esker.deliver.feed import CHANGE, Feed, Step, Subscription, wanted_ids, with_ids
from esker.engine.compat import from_arrow, metadata_column, snapshot_frame
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.file_frame import SnapshotFiles
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.engine.iceberg.metadata import Snapshot, SnapshotId
from esker.engine.iceberg.table import load
from esker.engine.session import Engine
from esker.errors import DeliveryRefused, ReindexNeeded
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.ledger.entry import read_head
from esker.ledger.offsets import Offset
from esker.project.types import quoted

_ADDING = ("append", "replace")
"""Kinds of snapshots that change no row: rows were added, or files were put together."""
_MOST_STEPS = 1_000
"""So many snapshots at most in one step: each has files of its own, however few rows are in them."""
_RUN, _CHANGESET = "esker.run", "esker.changeset"


@dataclass(frozen=True)
class _Added:
    """The files that one snapshot added."""

    sequence: int
    files: tuple[FileEntry, ...]
    at: Snapshot
    """A snapshot that has them all."""

    @property
    def rows(self) -> int:
        return sum(file.records for file in self.files)


class AppendFeed(Feed):
    """Reads what was appended to a table."""

    def __init__(self, engine: Engine, subscription: Subscription) -> None:
        super().__init__(engine, subscription)
        load(engine, subscription.table)  # or TableNotFound
        self.log = subscription.table
        self._table = Attempt(engine, subscription.table)
        subscription.check_numbers(self._table.format_version)
        subscription.check_ids(self._table.schema.arrow)

    def head(self) -> Offset:
        current = self._table.current
        snapshot = self._table.snapshot(current) if current is not None else None
        return self._at(snapshot) if snapshot is not None else self.beginning()

    def pinned(self) -> tuple[SnapshotId | None, Offset]:
        return self._table.current, self.head()

    def placed(
        self, rows: DataFrame, files: Sequence[FileEntry], offset: Offset, *, newest: bool
    ) -> DataFrame:
        numbered = self._numbered(rows, files)
        return self.subscription.newest(numbered) if newest else numbered

    def standing(self, offset: Offset) -> DataFrame:
        newest = self.subscription.newest(self._whole(self.head()))
        changeset = F.lit(offset.changeset).cast("bigint")
        return newest.withColumns({CHANGESET: changeset, OP: F.lit("update")})

    def beginning(self) -> Offset:
        return Offset(self._table.uuid, 0, None, None, 0, published=0)

    def tagged(self, snapshot: SnapshotId) -> Offset | None:
        found = self._table.snapshot(snapshot)
        return None if found is None else self._at(found)

    def check(self, offset: Offset) -> None:
        if offset.table != self._table.uuid:
            raise ReindexNeeded(self.subscription.name, "The table was made anew since.")
        self._added_since(offset)

    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        taken: list[_Added] = []
        count = 0
        for added in self._added_since(offset):
            # What was found by comparing has no snapshots between: there is nowhere to stop.
            can_stop = taken and taken[-1].at.id != added.at.id
            if can_stop and (count + added.rows > rows or len(taken) >= _MOST_STEPS):
                yield self._step(taken)
                taken, count = [], 0
            taken.append(added)
            count += added.rows
        head = self.head()
        if taken:
            yield self._step(taken, head)
        elif head.snapshot not in (None, offset.snapshot):
            # Only files were put together: the offset goes along, so that old snapshots can be expired.
            yield Step(head, 0, 0, self._none, lambda _: self._whole(head).limit(0))

    def newest_of(self, ids: Sequence[str], offset: Offset) -> DataFrame:
        own = self.subscription
        names = [quoted(name) for name in own.ids]
        with explained(f'cannot read table "{own.table}"', self.engine.log):
            wanted = wanted_ids(self.engine, own.ids, ids)
            found = own.newest(with_ids(self._whole(offset), wanted, own.ids))
            texts = found.select(*(F.col(n).cast("string").alias(n.strip("`")) for n in names))
            gone = with_ids(wanted, texts, own.ids, "left_anti")
            gone = gone.select(
                *(F.col(quoted(n)).cast(found.schema[n].dataType).alias(n) for n in own.ids),
                F.lit("delete").alias(OP),
                F.lit(0).cast("bigint").alias(ROW),
            )
            both = found.unionByName(gone, allowMissingColumns=True)
            return both.withColumn(CHANGESET, F.lit(offset.changeset).cast("bigint"))

    @property
    def tag_names(self) -> dict[str, SnapshotId]:
        return self._table.tags

    def _whole(self, offset: Offset) -> DataFrame:
        """Return the rows that the table had at an offset, each with the changeset that added it."""
        assert offset.snapshot is not None
        snapshot = self._table.snapshot(offset.snapshot)
        if snapshot is None:
            raise ReindexNeeded(self.subscription.name, "The snapshot that it has been told last is gone.")
        rows = snapshot_frame(self.engine.spark, self.log.sql, snapshot.id)
        files = self._table.files_at(snapshot).data
        self._check_order(rows, files)
        return self._numbered(rows, files)

    def check_order(self) -> None:
        current = self._table.current
        if current is not None:
            rows = snapshot_frame(self.engine.spark, self.log.sql, current)
            self._check_order(rows, self._table.files.data)

    def _check_order(self, rows: DataFrame, files: Sequence[FileEntry]) -> None:
        """Raise DeliveryRefused where rows of one id are in files that were put together."""
        mixed = [file.path for file in self._mixed(files)]
        if not mixed:
            return
        own = self.subscription
        is_mixed = metadata_column(rows, "_file").isin(mixed)
        ids = [quoted(name) for name in own.ids]
        groups = rows.select(*ids, is_mixed.alias("_esker_mixed")).groupBy(*ids)
        found = groups.agg(F.count("*").alias("_esker_rows"), F.max("_esker_mixed").alias("_esker_mixed"))
        with explained(f'cannot read table "{own.table}"', self.engine.log):
            several = found.where("_esker_rows > 1 AND _esker_mixed").first()
        if several is not None:
            values = ", ".join(str(several[place]) for place in range(len(ids)))
            raise DeliveryRefused(
                own.name,
                f"There are several rows with id {values} in files that were put together since, or were "
                "written while the table had format version 1: nobody can tell which came last. Load the "
                "table by key (mode: upsert).",
            )

    def _mixed(self, files: Sequence[FileEntry]) -> list[FileEntry]:
        """Return the files that hold rows of several snapshots, or of one without a number."""
        snapshots = {file.snapshot for file in files if file.snapshot is not None}
        known = (self._table.snapshot(snapshot) for snapshot in snapshots)
        replacing = {each.id for each in known if each is not None and each.operation == "replace"}
        # Who compacts lets its files keep the number of the snapshot that it read. Files of format version 1
        # have number 0, also after an upgrade.
        return [
            file
            for file in files
            if file.sequence != file.added or not file.sequence or file.snapshot in replacing
        ]

    def _numbered(self, rows: DataFrame, files: Sequence[FileEntry]) -> DataFrame:
        """Return rows of files with CHANGE: each with the changeset that added it."""
        shown = [quoted(name) for name in rows.columns if self.subscription.is_shown(name)]
        number: Column = F.lit(0).cast("bigint")
        # Not when a compaction added it: its rows would be newer than what came meanwhile.
        numbers = {file.path: file.sequence for file in files}
        place = metadata_column(rows, "_pos").alias(ROW)
        if len(set(numbers.values())) > 1:
            lies_in = metadata_column(rows, "_file").alias("_esker_file")
            told = {"_esker_path": [*numbers], "_esker_number": [*numbers.values()]}
            known = F.broadcast(from_arrow(self.engine.spark, pa.table(told)))
            number, place = F.col("_esker_number"), F.col(ROW)
            rows = rows.select(lies_in, metadata_column(rows, "_pos").alias(ROW), *shown)
            rows = rows.join(known, F.col("_esker_file") == F.col("_esker_path"), "left")
        elif numbers:
            number = F.lit(next(iter(numbers.values()))).cast("bigint")
        return rows.select(number.alias(CHANGESET), F.lit("insert").alias(OP), place, *shown)

    def _at(self, snapshot: Snapshot) -> Offset:
        run, number = snapshot.summary.get(_RUN), snapshot.sequence
        published = self._published(snapshot)
        return Offset(self._table.uuid, number, run, snapshot.id, number, published=published)

    def _published(self, snapshot: Snapshot) -> int | None:
        """Return Esker's last changeset up to a snapshot; None when what is before it is expired."""
        if snapshot.id == self._table.current:
            head = read_head(self._table.properties)
            return head.changeset if head is not None else 0
        before: Snapshot | None = snapshot
        while before is not None:
            number = before.summary.get(_CHANGESET)
            if number is not None:
                return int(number)
            if before.parent is None:
                return 0
            before = self._table.snapshot(before.parent)
        return None

    def _step(self, taken: Sequence[_Added], head: Offset | None = None) -> Step:
        files = [file for added in taken for file in added.files]
        is_here = can_read(self._table.files, self._table.schema, files)
        return Step(
            until=head or self._at(taken[-1].at),
            changesets=len(taken),
            count=sum(file.records for file in files),
            rows=partial(self._rows, tuple(taken)) if is_here else None,
            frame=partial(self._frame, tuple(taken)),
        )

    def _holding(self, taken: Sequence[_Added]) -> Iterator[tuple[SnapshotId, LiveFiles, list[FileEntry]]]:
        """Yield snapshots that together have all files of a step, each with those that it is asked for.

        As a rule one: the newest has all that nobody has put together since.
        """
        left = {file.path: (file, added.at) for added in taken for file in added.files}
        at, live = self._table.current, self._table.files
        while left:
            here = [left.pop(file.path)[0] for file in live.data if file.path in left]
            if here:
                assert at is not None
                yield at, live, here
            if left:
                _, newest = next(reversed(left.values()))
                at, live = newest.id, self._table.files_at(newest)

    def _rows(self, taken: Sequence[_Added]) -> pa.Table:
        found = {file.path: live for _, live, files in self._holding(taken) for file in files}
        parts = []
        for added in taken:
            for file in added.files:
                rows = live_rows(found[file.path], self._table.schema, [file])
                shown = rows.select([name for name in rows.column_names if self.subscription.is_shown(name)])
                change = [
                    pa.array([added.sequence] * len(rows), pa.int64()),
                    pa.array(["insert"] * len(rows)),
                    pa.array(range(len(rows)), pa.int64()),
                ]
                parts.append(pa.table([*change, *shown.columns], names=[*CHANGE, *shown.column_names]))
        return pa.concat_tables(parts)

    def _none(self) -> pa.Table:
        shown = [field for field in self._table.schema.arrow if self.subscription.is_shown(field.name)]
        kinds = [(CHANGESET, pa.int64()), (OP, pa.string()), (ROW, pa.int64())]
        return pa.schema([*(pa.field(*kind) for kind in kinds), *shown]).empty_table()

    def _frame(self, taken: Sequence[_Added], stack: ExitStack) -> DataFrame:
        frames = []
        for snapshot, _, files in self._holding(taken):
            of_snapshot = SnapshotFiles(self.engine, self.log, snapshot)
            rows = stack.enter_context(of_snapshot.frame(file.path for file in files))
            frames.append(self._numbered(rows, files))
        return reduce(DataFrame.unionByName, frames)

    def _added_since(self, offset: Offset) -> list[_Added]:
        """Return what was added behind an offset, oldest first. Raises ReindexNeeded."""
        known = self._since.get(offset.snapshot)
        if known is None:
            known = self._look_back(offset)
            if any(not added.sequence for added in known):
                self.check_order()  # of before an upgrade from format version 1
            self._since[offset.snapshot] = known
        return known

    @cached_property
    def _since(self) -> dict[SnapshotId | None, list[_Added]]:
        return {}

    def _look_back(self, offset: Offset) -> list[_Added]:
        current = self._table.current
        snapshot = self._table.snapshot(current) if current is not None else None
        head, found = snapshot, []
        while snapshot is not None and snapshot.id != offset.snapshot:
            if snapshot.operation not in _ADDING:
                why = f"Rows were changed or deleted since (snapshot {snapshot.id}, {snapshot.operation})."
                raise ReindexNeeded(self.subscription.name, why)
            if snapshot.operation == "append":
                files = self._table.added_by(snapshot)
                if files:
                    found.append(_Added(snapshot.sequence, files, snapshot))
            if snapshot.parent is None:
                break
            parent = self._table.snapshot(snapshot.parent)
            if parent is None:
                return self._compared(offset, head)
            snapshot = parent
        else:
            if offset.snapshot is not None and snapshot is None:
                raise ReindexNeeded(self.subscription.name, "The table is empty, and was not before.")
            return found[::-1]
        if offset.snapshot is not None:
            raise ReindexNeeded(self.subscription.name, "The table was rolled back since.")
        return found[::-1]

    def _compared(self, offset: Offset, head: Snapshot | None) -> list[_Added]:
        """Return what was added by comparing two snapshots: those between them have been expired."""
        then = self._table.snapshot(offset.snapshot) if offset.snapshot is not None else None
        if then is None or head is None:
            raise ReindexNeeded(self.subscription.name, "Snapshots that it has not been told are expired.")
        before, now = self._table.files_at(then), self._table.files_at(head)
        known = {file.path for file in before.data}
        deletes = {(file.path, file.offset) for file in before.deletes}
        is_rewritten = known - {file.path for file in now.data}
        if is_rewritten or {(file.path, file.offset) for file in now.deletes} - deletes:
            why = "Snapshots that it has not been told are expired, and files were rewritten since."
            raise ReindexNeeded(self.subscription.name, why)
        added = [file for file in now.data if file.path not in known]
        if self._mixed(added):
            why = "Snapshots that it has not been told are expired, and their files were put together."
            raise ReindexNeeded(self.subscription.name, why)
        fresh: dict[int, list[FileEntry]] = {}
        for file in added:
            fresh.setdefault(file.added, []).append(file)
        return [_Added(number, tuple(files), head) for number, files in sorted(fresh.items())]
