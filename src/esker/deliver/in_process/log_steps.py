"""The changes of a table that is loaded by key, from its change log, read without Spark.

Only what is in the log is delivered here. What a killed run has not written to it yet, Spark appends first,
or the next run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from esker.changes.arrow import LogReader
from esker.changes.log_files import LogFiles
from esker.changes.since import LogPosition
from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.in_process.tags import move_tag
from esker.deliver.in_process.view import View
from esker.deliver.subscription import Step, Subscription
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table_id import TableId
from esker.errors import LogAhead, LogGap, NoChangeLog, SideTableForeign
from esker.ledger.change_columns import OP
from esker.ledger.offsets import Offset
from esker.ledger.owed import logged_in
from esker.reading.lake import Lake, changeset_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LogSteps:
    """Reads a change log, as it is when it is opened."""

    def __init__(self, lake: Lake, subscription: Subscription, *, alone: bool) -> None:
        """`alone`: there is no Spark to go to."""
        self._lake, self._own, self._alone = lake, subscription, alone
        catalog, name = subscription.table.catalog, subscription.table.name
        table = lake.table(catalog, name)
        try:
            found = LogReader.of(partial(lake.table, catalog), table)
        except (LogGap, LogAhead, SideTableForeign):
            if alone:
                raise
            # Spark brings the log up to date first, and says what is to be done where that is not possible.
            raise NeedsSpark("the change log is not as it was left") from None
        if found is None:
            raise NoChangeLog(name, "no keyed pipeline with `changes: on` has published into it")
        if found.owed and not alone:
            raise NeedsSpark("a run has left changes that are not in the change log yet")
        self.log = TableId(catalog, found.log.name)
        lake.writable(catalog, found.log.name)  # before the first message: tags are set there
        self._changes, self._log = found, View(found.log)
        subscription.check_ids(View(found.table).schema.arrow)
        self._files = LogFiles(self._log.files.data, self._log.schema.ids)
        self._reached = logged_in(found.log.properties)

    @property
    def tag_names(self) -> dict[str, int]:
        return self._log.tags

    def tag(self, name: str, offset: Offset) -> None:
        if offset.snapshot is not None and self.tag_names.get(name) != offset.snapshot:
            move_tag(self._lake, self.log, name, offset.snapshot)

    def keep_all(self, name: str) -> bool:
        current = self._log.table.current
        if current is None:
            return False
        if name not in self.tag_names:
            move_tag(self._lake, self.log, name, current.snapshot_id)
        return True

    def head(self) -> Offset:
        return self._at(self._reached)

    def beginning(self) -> Offset:
        with self._own.or_reindex():
            self._changes.check_range(0, self._reached)
        return Offset(self._changes.uuid, 0, None, None, 0)

    def tagged(self, snapshot: int) -> Offset | None:
        current = self._log.table.snapshot(snapshot)
        while current is not None:
            number = changeset_of(current)
            if number is not None:
                return self._at(number)
            parent = current.parent_snapshot_id
            current = self._log.table.snapshot(parent) if parent is not None else None
        raise NeedsSpark("the state database knows no offset, and the tag's snapshot does not tell it")

    def check(self, offset: Offset) -> None:
        read = LogPosition(offset.table, offset.changeset, offset.run, offset.snapshot, offset.sequence)
        with self._own.or_reindex():
            self._changes.check(read)
        is_known = read.snapshot is None or self._changes.descends(read.snapshot, read.sequence) is not None
        if not is_known and not self._alone:
            raise NeedsSpark(
                "snapshots of the change log are expired that would tell whether it was rolled back"
            )

    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        since = offset.changeset
        while since < self._reached:
            until = self._files.end_of_step(since, self._reached, rows)
            files = self._files.between(since, until)
            yield Step(
                until=self._at(until),
                changesets=until - since,
                count=sum(file.records for file in files),
                rows=partial(self._rows, files, since, until),
                frame=not_a_frame,
            )
            since = until

    def _rows(self, files: Sequence[FileEntry], since: int, until: int) -> pa.Table:
        rows = self._own.changes(self._log.rows(self._log.files, files), since, until)
        if self._own.pipeline.mode == "delete_insert" and pc.any(pc.equal(rows.column(OP), "delete")).as_py():
            raise NeedsSpark("rows of a key were deleted, of which others may be left")
        return rows

    def _at(self, changeset: int) -> Offset:
        at = self._changes.position(changeset)
        return Offset(at.table, changeset, at.run, at.snapshot, at.sequence)


def not_a_frame(stack: ExitStack) -> DataFrame:
    """Raise NeedsSpark."""
    raise NeedsSpark("rows are asked for as a frame of Spark's")
