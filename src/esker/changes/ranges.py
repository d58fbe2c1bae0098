"""What changed in a table between two points, whoever tells it: its change log, or its own snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Snapshot

from esker.changes.arrow import LogReader, Piece, read_piece
from esker.changes.since import OF_LOG, RECREATED, LogPosition
from esker.errors import ChangesDiverged, NoChangeLog, TableNotFound
from esker.ledger.change_columns import CHANGESET, ROW
from esker.ledger.point import Point
from esker.reading.appended import AppendReader
from esker.reading.lake import Lake, OpenTable
from esker.reading.readable import Readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ChangeRange(Readable):
    """What changed in a table after one point, up to and including another, in the order of the changesets.

    Rows stand there as they were after each change, whatever happened to them since.
    """

    table: str
    since: int
    """Changesets after this one…"""
    until: int
    """…up to this one: the last that is there, unless an earlier one was asked for."""
    snapshot_id: int | None
    """Of a table without a change log: the snapshot up to which it was read, for `since` of the next range.
    Rows that other engines added have no changeset."""
    _as_frame: Callable[[ChangeRange], DataFrame] = field(repr=False, compare=False)

    @property
    @abstractmethod
    def position(self) -> Mapping[str, Any]:
        """Where a reader is that has read them, as plain JSON: `since` of the next range.

        Unlike a number, it tells whether the changes that follow belong to the same history: after a restore,
        numbers are given to other changes.
        """

    @property
    @abstractmethod
    def files(self) -> list[str]:
        """The locations of the data files that hold them: no other one is opened."""

    @abstractmethod
    def count(self) -> int:
        """Return how many changes there are; of most files, only what is known of them is read."""

    @abstractmethod
    def first(self, limit: int) -> pa.Table:
        """Return the first changes."""

    def to_spark(self) -> DataFrame:
        return self._as_frame(self)


@dataclass(frozen=True)
class LoggedChanges(ChangeRange):
    """Changes that a change log tells."""

    log: LogReader = field(repr=False, compare=False)

    @property
    def schema(self) -> pa.Schema:
        return self.log.reader().arrow

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The files that hold them."""
        return tuple(self.log.pieces(self.since, self.until))

    @cached_property
    def end(self) -> LogPosition:
        """The position of a reader that has read them."""
        return self.log.position(self.until)

    @property
    def position(self) -> Mapping[str, Any]:
        return self.end.as_json()

    @property
    def files(self) -> list[str]:
        return [part.path for piece in self.pieces for part in piece.parts]

    def count(self) -> int:
        narrow = self.log.reader([CHANGESET, ROW])
        return sum(
            sum(part.records for part in piece.parts)
            if self.since < piece.low and piece.high <= self.until and not _has_deletes(piece)
            else sum(batch.num_rows for batch in read_piece(narrow, piece, self.since, self.until))
            for piece in self.pieces
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        reader = self.log.reader()
        for piece in self.pieces:
            yield from read_piece(reader, piece, self.since, self.until)

    def first(self, limit: int) -> pa.Table:
        found = self.schema.empty_table()
        for piece in self.pieces:
            lacking = limit - found.num_rows
            if lacking <= 0:
                break
            own = self.schema.empty_table()
            for batch in read_piece(self.log.reader(), piece, self.since, self.until):
                # A changeset's rows may lie in several files, in any order.
                own = _sorted(pa.concat_tables([own, pa.Table.from_batches([batch])])).slice(0, lacking)
            found = pa.concat_tables([found, own])
        return found

    def to_arrow(self) -> pa.Table:
        """Return all changes as one Arrow table, by changeset and place in the batch."""
        return _sorted(super().to_arrow())


@dataclass(frozen=True)
class AppendedRows(ChangeRange):
    """Rows that were added to a table without a change log, as inserts."""

    reader: AppendReader = field(repr=False, compare=False)
    snapshots: tuple[Snapshot, ...] = field(repr=False, compare=False)

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    @property
    def position(self) -> Mapping[str, Any]:
        return {"table": str(self.reader.table.metadata.table_uuid), "snapshot": self.snapshot_id}

    @property
    def files(self) -> list[str]:
        return [part.path for snapshot in self.snapshots for part in self.reader.files(snapshot)]

    def count(self) -> int:
        return sum(part.records for each in self.snapshots for part in self.reader.files(each))

    def first(self, limit: int) -> pa.Table:
        found: list[pa.RecordBatch] = []
        for batch in self.to_batches():
            found.append(batch)
            if sum(each.num_rows for each in found) >= limit:
                break
        return pa.Table.from_batches(found, self.schema).slice(0, limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for snapshot in self.snapshots:
            yield from self.reader.read(snapshot)


Since = Point | Mapping[str, Any]
"""A point in a table's history, or the position of an earlier range of its changes."""


def changes_of(
    lake: Lake,
    catalog: str,
    name: str,
    since: Since | None,
    until: Point | None,
    as_frame: Callable[[ChangeRange], DataFrame],
) -> ChangeRange:
    """Return what changed in a table after one point, up to and including another.

    Raises NoChangeLog, UnknownPoint, ChangesForgotten, ChangesMissing, ChangesDiverged after a position that
    is of another history, NotWithoutSpark, and the errors of a change log that is not as it was left.
    """
    try:
        table = lake.table(catalog, name)
    except TableNotFound:
        raise NoChangeLog(name, "there is no such table") from None
    log = LogReader.of(lambda each: lake.table(catalog, each), table)
    if log is not None:
        begin = LogPosition.of_log(name, since) if isinstance(since, Mapping) else since
        first, last = log.between(begin, until)
        return LoggedChanges(name, first, last, None, as_frame, log)
    return _appended(lake, table, since, until, as_frame)


def _appended(
    lake: Lake,
    table: OpenTable,
    since: Since | None,
    until: Point | None,
    as_frame: Callable[[ChangeRange], DataFrame],
) -> AppendedRows:
    pipeline = lake.project.pipeline_into(table.catalog, table.name)
    if pipeline is not None and pipeline.mode != "append":
        raise NoChangeLog(table.name, "no keyed pipeline with `changes: on` has published into it")
    if isinstance(since, Mapping):
        if since["table"] != str(table.metadata.table_uuid):
            raise ChangesDiverged(table.name, None, RECREATED)
        if "snapshot" not in since:
            raise ChangesDiverged(table.name, since.get("changeset"), OF_LOG)
        since = since["snapshot"] if since["snapshot"] is not None else 0
    reader = AppendReader(table)
    span = reader.between(since, until)
    return AppendedRows(table.name, span.since, span.until, span.end, as_frame, reader, span.snapshots)


def _sorted(changes: pa.Table) -> pa.Table:
    keys = changes.select([CHANGESET, ROW])
    order = [(CHANGESET, "ascending"), (ROW, "ascending")]
    return changes.take(pc.sort_indices(keys, sort_keys=order))


def _has_deletes(piece: Piece) -> bool:
    return any(part.deletes for part in piece.parts)
