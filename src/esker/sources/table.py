"""Another Iceberg table as a source: all of it, what was appended to it, or what changed in it.

A table is read at one snapshot, and its position is that snapshot, or the last changeset: as long as it is
the newest one, there is nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from esker.changes.since import NOT_CONTINUED, LogPosition
from esker.engine.failures import explained
from esker.engine.iceberg.lineage import snapshots_since
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import Table, find_table, list_tables, named_table
from esker.errors import ChangesNotFollowed, SourceRefused, TableNotFound
from esker.ledger.entry import Position
from esker.project.reserved import is_own
from esker.project.sources import TableSource
from esker.project.types import Column, quoted
from esker.sources.changed_rows import ChangedRows, Copied
from esker.sources.frames import FrameReader, Rows
from esker.sources.source import Opening, Sent, Slice
from esker.sources.span import Span

_ADDING = ("append", "replace")
"""Kinds of snapshots that change no row: rows were added, or files were put together."""


class TableReader(FrameReader):
    """Reads a table."""

    def __init__(self, opening: Opening, source: TableSource, span: Span | None = None) -> None:
        super().__init__(opening, span)
        self._source = source
        self._unsure: dict[str, tuple[ChangedRows, Copied]] = {}
        """What was planned of tables in which several rows may have one key of the copy, by slice."""
        self._id = named_table(opening.engine.project, source.table, opening.pipeline.catalog)

    @classmethod
    def of(cls, opening: Opening) -> TableReader:
        source = opening.pipeline.source
        assert isinstance(source, TableSource)
        return cls(opening, source)

    def again(self, span: Span) -> TableReader | None:
        return TableReader(self._opening, self._source, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        engine = self._opening.engine
        engine.open_catalog(self._id.catalog)
        present = find_table(engine, self._id)
        if present is None:
            if any(other.table == self._source.table for other in engine.project.pipelines.values()):
                return []  # its own pipeline makes it
            raise TableNotFound(str(self._id), list_tables(engine, self._id.catalog))
        if present.snapshot is None:
            return []
        is_first = position is None or self._span is not None
        rows: Rows | None
        match self._source.read:
            case "changes":
                return self._changes(present, None if is_first else position)
            case "appended" if not is_first and position is not None:
                end, rows, told = self._newest(present), self._appended(present, position), "rows appended to"
            case _:
                end, rows, told = self._newest(present), self._whole(present), "all of"
        if rows is None or (position == end and self._span is None):
            return []
        # All of it was read: also when that was asked for, the next run goes on from here.
        until = present.snapshot.committed_at
        return [self._piece(position, end, f"{told} table {self._id}", rows, until=until)]

    def _newest(self, present: Table) -> Position:
        assert present.snapshot is not None
        end: dict[str, Any] = {"table": present.uuid, "snapshot": present.snapshot.id}
        if self._source.read == "whole" and self._source.where is not None:
            end["where"] = self._source.where  # with another one, other rows are all of it
        return end

    def _whole(self, present: Table) -> Rows:
        assert present.snapshot is not None
        total = present.snapshot.summary.get("total-records")
        count = int(total) if total is not None and self._source.where is None else None
        return Rows(self._frame(present, None), count)

    def _appended(self, present: Table, position: Position) -> Rows | None:
        """Return the rows that came since a position; None when there are none. Raises SourceRefused."""
        self._check_same(present, position)
        since = snapshots_since(self._opening.engine, present, position["snapshot"])
        if since is None:
            why = "The snapshot that was read last is gone: it was expired, or the table was rolled back."
            raise self._refused(why)
        for snapshot in since:
            if snapshot.operation not in _ADDING:
                why = f"Rows were changed or deleted since (snapshot {snapshot.id}, {snapshot.operation})."
                raise self._refused(why)
        if not any(snapshot.operation == "append" for snapshot in since):
            return None
        return Rows(self._frame(present, position["snapshot"]))

    def _changes(self, present: Table, position: Position | None) -> list[Slice]:
        """Return a slice of the rows that changed since a position, or of all that are there."""
        assert present.snapshot is not None
        changed = ChangedRows(self._opening.engine, present, self._opening.pipeline, self._source.where)
        self._check_copy(changed)
        if position is None:
            copied, told = changed.all(), "all of"
        else:
            known = LogPosition.from_json(position)
            self._check_where(position)
            try:
                changed.log.check(known)
            except NOT_CONTINUED as error:
                raise self._not_followed(
                    f"{error.message[0].upper()}{error.message[1:]}. {error.reason}"
                ) from error
            if known.changeset == changed.reached:
                return []
            copied, told = changed.since(known), f"what changed since changeset {known.changeset} in"
        end = {**changed.position().as_json(), "where": self._source.where}
        piece = self._piece(
            position, end, f"{told} table {self._id}", Rows(copied.rows), until=present.snapshot.committed_at
        )
        if changed.key.may_repeat:
            self._unsure[piece.id] = changed, copied
        return [piece]

    def check(self, slices: Sequence[Slice]) -> None:
        for changed, copied in [self._unsure.pop(piece.id) for piece in slices if piece.id in self._unsure]:
            with explained(f'cannot read table "{self._id}"', self._opening.engine.log, reads_source=True):
                several = changed.several(copied.here)
            if several is not None:
                key = ", ".join(self._opening.pipeline.key)
                raise ChangesNotFollowed(
                    str(self._id),
                    f"Several of its rows have {several}, and the copy keeps one row of each key [{key}].",
                    "Write mode: delete_insert, or add the columns to key: that tell these rows apart.",
                )

    def sent(self, slices: Sequence[Slice]) -> Sent:
        found = super().sent(slices)
        return replace(found, mark=self._mark) if self._source.read == "changes" else found

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        known = {column.name.lower() for column in columns}
        if self._source.read == "changes" and known and self._mark.lower() not in known:
            raise ChangesNotFollowed(
                str(self._id),
                f'The copy has no column "{self._mark}", by which the source says that a row is gone.',
                f"Declare the column {self._mark} (boolean), or another one with deleted_column:.",
            )
        return super().read(piece, columns)

    @property
    def _mark(self) -> str:
        return self._opening.pipeline.deleted_column

    def _check_copy(self, changed: ChangedRows) -> None:
        """Raise ChangesNotFollowed where the copy could not have the table's rows, or NoChangeLog."""
        changed.log, changed.key  # noqa: B018
        when, mark = self._opening.pipeline.delete_when, self._mark
        if when is not None and re.search(rf"\b{re.escape(mark)}\b", when, re.IGNORECASE) is None:
            raise ChangesNotFollowed(
                str(self._id),
                "delete_when: decides alone which rows are deleted, and does not ask column "
                f'"{mark}", by which the source says that a row is gone.',
                f"Write delete_when: {mark} OR ({when})",
            )

    def _check_where(self, position: Position) -> None:
        """Raise ChangesNotFollowed when rows were read by another condition. Old positions do not tell it."""
        was, now = position.get("where", self._source.where), self._source.where
        if (was or "").strip() == (now or "").strip():
            return
        before, after = (f"`{text.strip()}`" if text else "absent" for text in (was, now))
        raise self._not_followed(
            f"where: was {before} when the table was read last, and is {after}. Rows that have not changed "
            "since would stay in the copy, or be missing there.",
            "Or write where: as it was.",
        )

    def _not_followed(self, why: str, instead: str = "") -> ChangesNotFollowed:
        remedy = f"Read the table whole, once: esker backfill {self._opening.name} --full"
        return ChangesNotFollowed(str(self._id), why, f"{remedy}\n{instead}" if instead else remedy)

    def _check_same(self, present: Table, position: Position) -> None:
        if position["table"] != present.uuid:
            raise self._refused("It is another table than the one that was read before.")

    def _refused(self, why: str) -> SourceRefused:
        remedy = f"Read it whole, once: esker backfill {self._opening.name} --full"
        if not self._opening.pipeline.is_keyed:
            remedy = "Write read: whole, and a mode with a key."
        return SourceRefused(self._reads, why, remedy)

    def _frame(self, present: Table, after: SnapshotId | None) -> DataFrame:
        """Return the table's rows, or those that came after a snapshot, without Esker's own columns."""
        engine, snapshot = self._opening.engine, present.snapshot
        assert snapshot is not None
        with explained(f'cannot read table "{self._id}"', engine.log, reads_source=True):
            if after is None:
                found = pinned_rows(engine, present)
            else:
                span = {"start-snapshot-id": str(after), "end-snapshot-id": str(snapshot.id)}
                found = engine.spark.read.options(**span).table(self._id.sql)
            found = found.where(self._source.where) if self._source.where is not None else found
            return found.select(*(quoted(name) for name in found.columns if not is_own(name)))
