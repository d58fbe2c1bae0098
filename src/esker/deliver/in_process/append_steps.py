"""The changes of a table that is only appended to, from its own snapshots, read without Spark.

Only the plain case: all snapshots behind the offset are there. Where some are expired, Spark compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyiceberg.table.snapshots import Operation, Snapshot

from esker.deliver.in_process.log_steps import not_a_frame
from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.in_process.tags import move_tag
from esker.deliver.in_process.view import View
from esker.deliver.subscription import CHANGE, Step, Subscription
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.errors import ReindexNeeded
from esker.ledger.entry import read_head
from esker.ledger.offsets import Offset
from esker.reading.lake import Lake, changeset_of, told
from esker.reading.planned import files_at

_MOST_STEPS = 1_000
"""So many snapshots at most in one step: each has files of its own, however few rows are in them."""


@dataclass(frozen=True)
class _Added:
    """The files that one snapshot added."""

    at: Snapshot
    live: LiveFiles
    """Its own data files. No delete concerns them: behind the offset rows are only added."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return self.live.data

    @property
    def rows(self) -> int:
        return sum(file.records for file in self.files)


class AppendSteps:
    """Reads what was appended to a table, as it is when it is opened."""

    def __init__(self, lake: Lake, subscription: Subscription) -> None:
        self._lake, self._own = lake, subscription
        self.log = subscription.table
        self._table = View(lake.table(self.log.catalog, self.log.name))
        lake.writable(self.log.catalog, self.log.name)  # before the first message: tags are set there
        subscription.check_numbers(self._table.table.metadata.format_version)
        subscription.check_ids(self._table.schema.arrow)

    @property
    def tag_names(self) -> dict[str, int]:
        return self._table.tags

    def tag(self, name: str, offset: Offset) -> None:
        if offset.snapshot is not None and self.tag_names.get(name) != offset.snapshot:
            move_tag(self._lake, self.log, name, offset.snapshot)

    def keep_all(self, name: str) -> bool:
        return False

    def head(self) -> Offset:
        current = self._table.table.current
        return self._at(current) if current is not None else self.beginning()

    def beginning(self) -> Offset:
        return Offset(self._table.uuid, 0, None, None, 0, published=0)

    def tagged(self, snapshot: int) -> Offset | None:
        found = self._table.table.snapshot(snapshot)
        return None if found is None else self._at(found)

    def check(self, offset: Offset) -> None:
        if offset.table != self._table.uuid:
            raise ReindexNeeded(self._own.name, "The table was made anew since.")
        self._added_since(offset)

    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        taken: list[_Added] = []
        count = 0
        for added in self._added_since(offset):
            if taken and (count + added.rows > rows or len(taken) >= _MOST_STEPS):
                yield self._step(taken, self._at(taken[-1].at))
                taken, count = [], 0
            taken.append(added)
            count += added.rows
        head = self.head()
        if taken or head.snapshot not in (None, offset.snapshot):
            # Also where files were only put together: the offset goes along, and old snapshots can expire.
            yield self._step(taken, head)

    def _step(self, taken: Sequence[_Added], until: Offset) -> Step:
        count = sum(added.rows for added in taken)
        return Step(until, len(taken), count, partial(self._rows, tuple(taken)), not_a_frame)

    def _rows(self, taken: Sequence[_Added]) -> pa.Table:
        parts = []
        for added in taken:
            for file in added.files:
                rows = self._table.rows(added.live, [file])
                shown = rows.select([name for name in rows.column_names if self._own.is_shown(name)])
                change = [
                    pa.array([added.at.sequence_number] * len(rows), pa.int64()),
                    pa.array(["insert"] * len(rows)),
                    pa.array(range(len(rows)), pa.int64()),
                ]
                parts.append(pa.table([*change, *shown.columns], names=[*CHANGE, *shown.column_names]))
        return pa.concat_tables(parts)

    def _added_since(self, offset: Offset) -> list[_Added]:
        """Return what was added behind an offset, oldest first. Raises ReindexNeeded and NeedsSpark."""
        known = self._since.get(offset.snapshot)
        if known is None:
            known = self._since[offset.snapshot] = [
                _Added(each, self._files_of(each)) for each in self._line_since(offset) if _is_append(each)
            ]
        return [added for added in known if added.files]

    @cached_property
    def _since(self) -> dict[int | None, list[_Added]]:
        return {}

    def _line_since(self, offset: Offset) -> list[Snapshot]:
        line = self._table.table.lineage()
        places = {each.snapshot_id: place for place, each in enumerate(line)}
        if offset.snapshot is not None and offset.snapshot not in places:
            raise NeedsSpark("its last snapshot is expired, or the table was rolled back")
        if offset.snapshot is None and line and line[0].parent_snapshot_id is not None:
            raise NeedsSpark("snapshots that it has not been told are expired")
        found = line[places[offset.snapshot] + 1 :] if offset.snapshot is not None else line
        for each in found:
            kind = each.summary.operation if each.summary is not None else None
            if kind not in (Operation.APPEND, Operation.REPLACE):
                what = kind.value if kind is not None else "of an unknown kind"
                why = f"Rows were changed or deleted since (snapshot {each.snapshot_id}, {what})."
                raise ReindexNeeded(self._own.name, why)
            if not each.sequence_number:
                raise NeedsSpark("rows were added while the table had format version 1, and have no numbers")
        return found

    def _files_of(self, snapshot: Snapshot) -> LiveFiles:
        """Return the data files that a snapshot added. Manifests of others are not opened."""
        own = snapshot.snapshot_id

        def may_hold(manifest: Mapping[str, Any]) -> bool:
            return not manifest.get("content") and manifest["added_snapshot_id"] == own

        live = files_at(self._table.table, snapshot, may_hold)
        return replace(live, data=tuple(file for file in live.data if file.snapshot in (None, own)))

    def _at(self, snapshot: Snapshot) -> Offset:
        number = snapshot.sequence_number or 0
        run, published = told(snapshot, "esker.run"), self._published(snapshot)
        return Offset(self._table.uuid, number, run, snapshot.snapshot_id, number, published=published)

    def _published(self, snapshot: Snapshot) -> int | None:
        """Return Esker's last changeset up to a snapshot; None when what is before it is expired."""
        if snapshot == self._table.table.current:
            head = read_head(self._table.table.properties)
            return head.changeset if head is not None else 0
        before: Snapshot | None = snapshot
        while before is not None:
            number = changeset_of(before)
            if number is not None:
                return number
            if before.parent_snapshot_id is None:
                return 0
            before = self._table.table.snapshot(before.parent_snapshot_id)
        return None


def _is_append(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND
