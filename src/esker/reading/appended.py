"""The changes of a table without a change log to which rows are only added: its own snapshots tell them.

Each append is a changeset, and its rows are inserts. One that another engine made has no number and no run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.table.snapshots import Operation, Snapshot

from esker.errors import ChangesForgotten, NoChangeLog, UnknownPoint
from esker.ledger.change_columns import CHANGESET, COMMITTED_AT, OP, PIPELINE, RUN
from esker.ledger.entry import read_head
from esker.ledger.point import Point, is_changeset, read_point
from esker.reading.lake import OpenTable, changeset_of, told
from esker.reading.planned import files_at
from esker.reading.readable import while_files_live
from esker.reading.rows import Part, RowReader

_OWN = pa.schema(
    [
        pa.field(CHANGESET, pa.int64()),
        pa.field(OP, pa.string()),
        pa.field(PIPELINE, pa.string()),
        pa.field(RUN, pa.string()),
        pa.field(COMMITTED_AT, pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class Span:
    """Snapshots of a table, the changesets between which they lie, and the snapshot that they end with."""

    since: int
    until: int
    end: int | None
    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True)
class AppendReader:
    """A table whose snapshots are its change log, as it was when it was opened."""

    table: OpenTable

    @cached_property
    def line(self) -> list[Snapshot]:
        """Its snapshots that are not expired, oldest first."""
        return self.table.lineage()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*_OWN, *self._reader.arrow])

    def between(self, since: Point | None, until: Point | None) -> Span:
        """Return the snapshots after one point, up to another.

        Raises UnknownPoint, ChangesForgotten where snapshots are expired, and NoChangeLog where one changed
        or deleted rows.
        """
        first = self._begin(since) if since is not None else -1
        last = max(first, self._index(until) if until is not None else len(self.line) - 1)
        found = tuple(self.line[first + 1 : last + 1])
        for snapshot in found:
            kind = snapshot.summary.operation if snapshot.summary is not None else None
            if kind not in (Operation.APPEND, Operation.REPLACE):
                what = kind.value if kind is not None else "of an unknown kind"
                raise NoChangeLog(
                    self.table.name, f"snapshot {snapshot.snapshot_id} ({what}) changed or deleted rows"
                )
        begin = self._changeset_upto(first) if first >= 0 else self._oldest - 1
        end = self.line[last].snapshot_id if last >= 0 else None
        return Span(begin, max(begin, self._changeset_upto(last)), end, found)

    def _changeset_upto(self, index: int) -> int:
        """Return the last changeset up to a snapshot, by its place in the line; 0 when there is none."""
        numbers = (changeset_of(each) for each in reversed(self.line[: index + 1]))
        return next((number for number in numbers if number is not None), 0)

    @cached_property
    def _oldest(self) -> int:
        """The oldest changeset that is not expired."""
        if not self.line or self.line[0].parent_snapshot_id is None:
            return 1
        head = read_head(self.table.properties)
        numbers = (changeset_of(each) for each in self.line)
        following = head.changeset + 1 if head is not None else 1
        return next((number for number in numbers if number is not None), following)

    @cached_property
    def _reached(self) -> int:
        """The newest changeset."""
        newest = self._changeset_upto(len(self.line) - 1)
        if newest or not self.line or self.line[0].parent_snapshot_id is None:
            return newest
        head = read_head(self.table.properties)  # its snapshot is expired
        return head.changeset if head is not None else 0

    def _begin(self, point: Point) -> int:
        """Return the place of the snapshot behind which a range lies, which must be there."""
        there = read_point(point)
        if isinstance(there, int) and is_changeset(there) and there > self._reached:
            raise UnknownPoint.ahead(str(point), self.table.name, self._reached)
        return self._index(point)

    def _index(self, point: Point) -> int:
        """Return the place of the last snapshot at a point; −1 before all."""
        there = read_point(point)
        if isinstance(there, int) and not is_changeset(there):
            for index, snapshot in enumerate(self.line):
                if snapshot.snapshot_id == there:
                    return index
            raise UnknownPoint(str(point), "the table has no such snapshot, or it is expired or rolled back")
        for index in reversed(range(len(self.line))):
            if _is_at(self.line[index], there):
                return index
        if self.line and self.line[0].parent_snapshot_id is not None:
            # Also right before the oldest one: what others added in between may be expired with it.
            raise ChangesForgotten(self.table.name, self._oldest - 1, self._oldest)
        return -1

    def files(self, snapshot: Snapshot) -> list[Part]:
        """Return the files that a snapshot added."""
        if snapshot.summary is None or snapshot.summary.operation is not Operation.APPEND:
            return []
        own = snapshot.snapshot_id

        def may_hold(manifest: Mapping[str, Any]) -> bool:
            return not manifest.get("content") and manifest["added_snapshot_id"] == own

        live = files_at(self.table, snapshot, may_hold)
        added = (file for file in live.data if file.snapshot in (None, own))
        return [Part.of(self.table.metadata, file) for file in sorted(added, key=lambda file: file.path)]

    def read(self, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a snapshot added, as inserts."""
        values = facts_of(snapshot)
        for part in self.files(snapshot):
            with while_files_live(part.path):
                for batch in self._reader.read(part):
                    own = [
                        pa.repeat(pa.scalar(value, field.type), batch.num_rows)
                        for field, value in zip(_OWN, values, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays([*own, *batch.columns], schema=self.schema)

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader(self.table.name, self.table.metadata, self.table.store, self.table.metadata.schema())


def facts_of(snapshot: Snapshot) -> tuple[int | None, str, str | None, str | None, datetime]:
    """Return changeset, op, pipeline, run and time of the rows that a snapshot added."""
    moment = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    run = told(snapshot, "esker.run")
    return changeset_of(snapshot), "insert", told(snapshot, "esker.pipeline"), run, moment


def _is_at(snapshot: Snapshot, there: int | datetime) -> bool:
    """Tell whether a snapshot is there already at a changeset or time."""
    if isinstance(there, datetime):
        return snapshot.timestamp_ms <= there.timestamp() * 1000
    number = changeset_of(snapshot)
    return number is not None and number <= there
