"""Another Iceberg table as a source: all of it, what was appended to it, or what changed in it.

A table is read at one snapshot, and its position is that snapshot, or the last changeset: as long as it is
the newest one, there is nothing to do.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from esker.engine.failures import explained
from esker.engine.iceberg.lineage import snapshots_since
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import Table, find_table, list_tables, named_table
from esker.errors import ChangesForgotten, SourceRefused, TableNotFound
from esker.ledger.entry import Position
from esker.project.reserved import is_own
from esker.project.sources import TableSource
from esker.project.types import quoted
from esker.sources.changed_rows import ChangedRows
from esker.sources.frames import FrameReader, Rows
from esker.sources.source import Opening, Slice
from esker.sources.span import Span

_ADDING = ("append", "replace")
"""Kinds of snapshots that change no row: rows were added, or files were put together."""


class TableReader(FrameReader):
    """Reads a table."""

    def __init__(self, opening: Opening, source: TableSource, span: Span | None = None) -> None:
        super().__init__(opening, span)
        self._source = source
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
                end, rows, told = self._changes(present, None if is_first else position)
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

    def _changes(self, present: Table, position: Position | None) -> tuple[Position, Rows, str]:
        """Return the rows that changed since a position, or all that are there, and where that ends."""
        engine, pipeline = self._opening.engine, self._opening.pipeline
        changed = ChangedRows(engine, present, pipeline.deleted_column, self._source.where)
        if position is None:
            reached, frame, told = changed.reached(), changed.all(), "all of"
        else:
            self._check_same(present, position)
            try:
                frame, reached = changed.since(position["changeset"])
            except ChangesForgotten as error:
                raise self._refused(f"Changes that were not read yet are gone. {error.reason}") from error
            told = f"what changed since changeset {position['changeset']} in"
        return {"table": present.uuid, "changeset": reached}, Rows(frame), told

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
