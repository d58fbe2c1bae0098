"""The changes of a table that has a change log: what is in the log, and what is on its way there.

Each changeset is one append to the log, with files of its own. So a range is found by the log's snapshots
and the bounds of its files, and nothing else is opened. What a killed run still owes lies in staged files
that the table's outbox names: they are read in their place, as if somebody had appended them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.schema import Schema

from esker.changes.since import ReadableLog
from esker.engine.iceberg.manifests import FileEntry
from esker.errors import (
    ChangesMissing,
    LogAhead,
    LogGap,
    SideTableForeign,
    StoreUnreachable,
    TableNotFound,
    UnknownPoint,
)
from esker.ledger.change_columns import CHANGESET, COMMITTED_AT, ROW, RUN
from esker.ledger.entry import read_head
from esker.ledger.owed import (
    LOG,
    Named,
    OutboxEntry,
    first_kept,
    gaps_in,
    logged_at,
    logged_in,
    places_in,
    read_outbox,
)
from esker.ledger.point import Point, is_changeset, read_point
from esker.reading.lake import OpenTable, changeset_of, moment_of
from esker.reading.planned import files_at, parts_of
from esker.reading.readable import while_files_live
from esker.reading.rows import Part, RowReader, Within

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOST = "Its files were removed before they got into the change log. The next run makes them anew."


@dataclass(frozen=True)
class Piece:
    """Files with the changesets from one to another, which must be read together."""

    low: int
    high: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class LogReader(ReadableLog):
    """A table with its change log, both as they were when they were opened."""

    table: OpenTable
    log: OpenTable
    owed: tuple[OutboxEntry, ...]
    """What the log still lacks, in order."""

    @classmethod
    def of(cls, open_table: Callable[[str], OpenTable], table: OpenTable) -> LogReader | None:
        """Open the change log of a table; None when it has none.

        Raises SideTableForeign, LogAhead and LogGap when the log is not as it was left.
        """
        named = Named.by(table.properties, LOG)
        if named is None:
            return None
        try:
            # After the table: the other way round would see gaps that are none.
            log = open_table(named.table)
        except TableNotFound:
            raise SideTableForeign(named.table) from None
        _check_same(named, log)
        logged, head = logged_in(log.properties), read_head(table.properties)
        if head is not None and logged > head.changeset:
            # Perhaps others went on meanwhile, and the table is of the past.
            table = open_table(table.name)
            head = read_head(table.properties)
            if head is not None and logged > head.changeset:
                raise LogAhead(named.table, logged, table.name, head.changeset)
        entries = [each for each in read_outbox(table.properties) if LOG in each.owed]
        owed = tuple(entry for entry in entries if entry.changeset > logged)
        for before, entry in zip((logged, *(each.changeset for each in owed)), owed, strict=False):
            if entry.after != before:
                raise LogGap(named.table, before, entry.changeset)
        return cls(table, log, owed)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def uuid(self) -> str:
        return str(self.table.metadata.table_uuid)

    @cached_property
    def reached(self) -> int:
        return self.owed[-1].changeset if self.owed else logged_in(self.log.properties)

    @cached_property
    def first(self) -> int:
        return first_kept(self.log.properties)

    @property
    def published(self) -> int:
        head = read_head(self.table.properties)
        return head.changeset if head is not None else 0

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        skipped = ((entry.after + 1, entry.changeset - 1) for entry in self.owed)
        return (*gaps_in(self.log.properties), *skipped)

    def run_of(self, changeset: int) -> str | None:
        narrow = self.reader([CHANGESET, ROW, RUN])
        with suppress(ChangesMissing, StoreUnreachable):  # the files were removed since the log was opened
            for piece in self.pieces(changeset - 1, changeset):
                for batch in read_piece(narrow, piece, changeset - 1, changeset):
                    runs = batch.filter(pc.equal(batch.column(CHANGESET), changeset)).column(RUN)
                    if len(runs):
                        return str(runs[0].as_py())
        return None

    def snapshot_of(self, changeset: int) -> tuple[int, int] | None:
        line = self.log.lineage()
        if 0 < changeset == logged_in(self.log.properties):
            found = self.log.current  # also where others put files together since
        else:
            found = next((each for each in reversed(line) if changeset_of(each) == changeset), None)
        return (found.snapshot_id, found.sequence_number or 0) if found is not None else None

    def descends(self, snapshot: int, sequence: int) -> bool | None:
        line = self.log.lineage()
        if any(each.snapshot_id == snapshot for each in line):
            return True
        is_cut = bool(line) and line[0].parent_snapshot_id is not None
        return None if is_cut and sequence < (line[0].sequence_number or 0) else False

    def changeset_at(self, point: Point) -> int:
        there = read_point(point)
        if isinstance(there, datetime):
            return self._at(there)
        if is_changeset(there):
            return there
        current = self.table.snapshot(there)
        if current is not None and not self.table.comes_from(current):
            raise UnknownPoint.left(str(point))
        while current is not None:
            number = changeset_of(current)
            if number is not None:
                return number
            parent = current.parent_snapshot_id
            current = self.table.snapshot(parent) if parent is not None else None
        raise UnknownPoint(str(point), "the table has no such snapshot, or it says nothing of a changeset")

    def _at(self, moment: datetime) -> int:
        """Return the last changeset of a time."""
        lineage = self.table.lineage()
        for snapshot in reversed(lineage):
            number, committed = changeset_of(snapshot), moment_of(snapshot)
            if number is not None and committed is not None and committed <= moment:
                return number
        if not lineage or lineage[0].parent_snapshot_id is None:
            return 0
        # Older snapshots of the table are expired: the log itself still tells when.
        return self._logged_at(moment)

    def _logged_at(self, moment: datetime) -> int:
        newest = 0
        asked = (moment - _EPOCH) // timedelta(microseconds=1)
        live = files_at(self.log, self.log.current)
        number, committed = self._ids(CHANGESET), self._ids(COMMITTED_AT)
        straddling = []
        for file in live.data:
            begin, end, high = (
                file.lowest(committed),
                file.highest(committed),
                file.highest(number),
            )
            if end is not None and high is not None and end <= asked:
                newest = max(newest, high)
            elif begin is None or begin <= asked:
                straddling.append(file)
        reader = self.reader([CHANGESET, COMMITTED_AT])
        for part in parts_of(self.log, live, straddling):
            for batch in reader.read(part):
                early = batch.filter(pc.less_equal(batch.column(COMMITTED_AT), pa.scalar(moment)))
                newest = max(newest, pc.max(early.column(CHANGESET)).as_py() or 0)
        return newest

    def reader(self, columns: Sequence[str] | None = None) -> RowReader:
        """Return what reads files of the log, with some of its columns or all."""
        schema = self.log.metadata.schema()
        if columns is not None:
            schema = Schema(*(schema.find_field(name) for name in columns))
        return RowReader(self.log.name, self.log.metadata, self.log.store, schema)

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """Yield what holds the changesets after one, up to another, in their order."""
        yield from _apart(self._logged(first, last))
        for entry in self.owed:
            if first < entry.changeset <= last:
                yield Piece(entry.changeset, entry.changeset, tuple(self._staged(entry)))

    def _logged(self, first: int, last: int) -> list[tuple[int, int, int, Part]]:
        """Return the files of the log that may hold changesets: lowest, highest, lowest place, file."""
        live = files_at(self.log, self.log.current, self._may_hold(first, last))
        number, row = self._ids(CHANGESET), self._ids(ROW)
        wanted: list[tuple[int, int, FileEntry]] = []
        for file in live.data:
            low, high = file.lowest(number), file.highest(number)
            if low is None or high is None:
                wanted.append((0, last + 1, file))  # it does not tell what is in it: perhaps anything
            elif low <= last and high > first:
                wanted.append((low, high, file))
        parts = parts_of(self.log, live, (file for _, _, file in wanted))
        return [
            (low, high, file.lowest(row) or 0, part)
            for (low, high, file), part in zip(wanted, parts, strict=True)
        ]

    def _may_hold(self, first: int, last: int) -> Callable[[Mapping[str, Any]], bool]:
        """Return what tells of a manifest, unopened, whether changesets may be in it."""
        appends = {
            each.snapshot_id: (number, each.sequence_number or 0)
            for each in self.log.metadata.snapshots
            if (number := changeset_of(each)) is not None
        }
        line = {each.snapshot_id for each in self.log.lineage()}
        before = max(
            (sequence for key, (number, sequence) in appends.items() if key in line and number <= first),
            default=0,
        )

        def may_hold(manifest: Mapping[str, Any]) -> bool:
            if manifest.get("content"):
                return True
            if 0 < (manifest.get("sequence_number") or 0) <= before:
                return False  # written before any of these changesets was there
            known = appends.get(manifest["added_snapshot_id"])
            if known is not None and manifest.get("existing_files_count") == 0:
                return first < known[0] <= last  # an append of one changeset, and nothing else
            return True

        return may_hold

    def _staged(self, entry: OutboxEntry) -> Iterator[Part]:
        """Yield the files of a changeset that is on its way, or raise ChangesMissing."""
        named = Named.by(self.table.properties, LOG)
        assert named is not None
        try:
            owed = entry.owed[LOG]
            store = self.log.store
            places = owed if not isinstance(owed, str) else places_in(store.read_bytes(named.place(owed)))
            for name, size in places:
                location = named.place(name)
                files, path = store.filesystem(location)
                with files.open_input_file(path) as stream:
                    rows = pq.read_metadata(stream).num_rows
                yield Part(location, "parquet", rows, size)
        except FileNotFoundError:
            raise ChangesMissing(self.table.name, entry.changeset, entry.changeset, _LOST) from None

    def _ids(self, name: str) -> int:
        return self.log.metadata.schema().find_field(name).field_id


def read_piece(reader: RowReader, piece: Piece, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a piece that lie after one changeset, up to another, in their order."""
    if piece.low == piece.high:
        for part in piece.parts:
            with while_files_live(part.path):
                yield from reader.read(part)
        return
    # Somebody put files together: their changesets are mixed, and must be sorted.
    found = []
    for part in piece.parts:
        with while_files_live(part.path):
            for batch in reader.read(part, Within(CHANGESET, first + 1, last)):
                number = batch.column(CHANGESET)
                found.append(batch.filter(pc.and_(pc.greater(number, first), pc.less_equal(number, last))))
    mixed = pa.Table.from_batches(found, reader.arrow)
    yield from mixed.sort_by([(CHANGESET, "ascending"), (ROW, "ascending")]).to_batches()


def _apart(files: Iterable[tuple[int, int, int, Part]]) -> Iterator[Piece]:
    """Yield files so that no changeset of one piece is also in another."""
    piece: Piece | None = None
    for low, high, _, part in sorted(files, key=lambda file: file[:3]):
        if piece is not None and low <= piece.high:
            piece = Piece(piece.low, max(piece.high, high), (*piece.parts, part))
            continue
        if piece is not None:
            yield piece
        piece = Piece(low, high, (part,))
    if piece is not None:
        yield piece


def _check_same(named: Named, log: OpenTable) -> None:
    """Raise SideTableForeign for a log that is another one, or that was rolled back."""
    if str(log.metadata.table_uuid) != named.uuid:
        raise SideTableForeign(named.table)
    at = logged_at(log.properties)
    if at is None:
        return
    (snapshot, sequence), line = at, log.lineage()
    is_there = any(each.snapshot_id == snapshot for each in line)
    is_cut = bool(line) and line[0].parent_snapshot_id is not None
    # Where it is expired, at least nothing older may be the newest.
    is_behind = not line or (line[-1].sequence_number or 0) < sequence
    if not is_there and (not is_cut or is_behind):
        raise SideTableForeign(named.table)
