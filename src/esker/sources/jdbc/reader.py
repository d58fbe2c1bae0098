"""Read a database: a whole table in chunks, or what is new by a cursor.

The end of a run is fixed when it is planned: rows that arrive later belong to the next one. By a cursor it
lies where no earlier row can come any more (`settled.py`; elsewhere than in PostgreSQL `lag` tells). In
PostgreSQL all queries of a run see one snapshot. Elsewhere a mode that takes all rows together is one query,
and chunks of others are queries of their own (in SQLite those of a batch are one): a row that moves to
another chunk meanwhile may come twice or wait for the next round, as it may between batches. Rows are kept
until they are loaded, so that none is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.jdbc import DatabaseColumn
from esker.engine.kept import KeptFrames
from esker.errors import NullCursor
from esker.ledger.cursor_marks import CursorMark, keep_marks, read_marks
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.modes import SWAPPING
from esker.project.sources import JdbcSource
from esker.project.sources.jdbc import REPEATABLE, Chunks
from esker.project.types import Column, columns_from_json
from esker.sources.jdbc.cursor import earlier, moment_of
from esker.sources.jdbc.database import Bounds, Relation, check_end, unsuitable
from esker.sources.jdbc.dialect import SqliteDialect
from esker.sources.jdbc.settled import (
    Settled,
    bounded_by_clock,
    check_same_server,
    is_unique,
    kept_for,
    settle,
)
from esker.sources.jdbc.timed import TimedTable, WindowedTexts
from esker.sources.source import ORIGIN, Fetched, Opening, Reader, Sent, Slice
from esker.sources.span import Span
from esker.sources.windowed import WindowedReader

_PEEKED = 100
_LOWEST = "-infinity"
"""Nothing lies before it."""


@dataclass(frozen=True)
class _Part:
    """What a slice is made of."""

    conditions: tuple[str, ...] = ()
    """Ranges of the table; all of it where there are none."""
    limit: int | None = None


class JdbcReader(Reader):
    """Reads a table or query. Its position is the last cursor, or how far a table has been read in chunks."""

    def __init__(self, opening: Opening, source: JdbcSource, span: Span | None = None) -> None:
        self._opening, self._source, self._span = opening, source, span
        self._relation = Relation(opening.engine, source)
        self._kept = KeptFrames(opening.engine)
        self._frames: dict[str, DataFrame] = {}
        self._notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, opening: Opening) -> Reader:
        source = opening.pipeline.source
        assert isinstance(source, JdbcSource)
        if source.window is not None:
            table = TimedTable(opening.engine, source)
            kind = WindowedTexts if table.is_text else WindowedReader
            return kind(opening, table, source.window)
        return cls(opening, source)

    def again(self, span: Span) -> JdbcReader | None:
        return JdbcReader(self._opening, self._source, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        self.close()
        self._notes = ()
        if self._span is not None:
            return [self._whole(position, position)]
        if self._source.cursor is not None:
            return self._new_rows(self._source.cursor, position)
        if self._opening.pipeline.mode in SWAPPING:
            # Partitions and keys that are spread over chunks would be swapped for a part of them.
            return [self._whole(position, {"rounds": _rounds(position) + 1})]
        return self._chunks(position)

    def fetch(self, slices: list[Slice]) -> Fetched:
        return Fetched(slices, notes=self._notes)

    def newest(self) -> Slice | None:
        self.close()
        part = _Part(limit=_PEEKED)
        return Slice(None, None, new_run_id(), 0, f"{_PEEKED} rows of {self._name}", part)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        dialect = self._relation.dialect
        if isinstance(dialect, SqliteDialect):
            return Sent(dialect.sent(self._relation.columns), is_text=True)
        with explained("cannot look into the database", self._opening.engine.log, reads_source=True):
            return Sent(columns_from_json(self._relation.frame().schema.jsonValue()))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        if piece.id not in self._frames:
            part: _Part = piece.content
            with explained("cannot read the database", self._opening.engine.log, reads_source=True):
                rows = self._relation.frame(part.conditions, part.limit)
                rows = rows.withColumn(ORIGIN, F.lit(self._source.reads))
                if not self._relation.dialect.has_snapshots:
                    rows = self._kept.keep(rows, StorageLevel.DISK_ONLY)
            self._frames[piece.id] = rows
        return self._frames[piece.id]

    def settled(self, piece: Slice) -> None:
        self._frames.pop(piece.id, None)
        self._kept.let_go()

    def close(self) -> None:
        self._frames.clear()
        self._kept.let_go()
        self._relation.close()

    @property
    def _name(self) -> str:
        return self._source.table or "the query"

    # --- all of it -------------------------------------------------------------------------------

    def _whole(self, start: Position | None, end: Position | None) -> Slice:
        """Return everything as one slice, in chunks where all of them see one snapshot."""
        conditions: tuple[str, ...] = ()
        key = self._relation.key() if self._relation.dialect.has_snapshots else None
        top = self._relation.highest(key) if key is not None else None
        if key is not None and top is not None:
            conditions = tuple(
                self._relation.inside(key, bounds)
                for bounds in self._relation.cut(key, Bounds(None, top, with_nulls=True), self._size)
            )
        told = f"all rows of {self._name}"
        if len(conditions) > 1:
            told += f", {len(conditions)} chunks"
        return Slice(start, end, new_run_id(), 0, told, _Part(conditions), until=self._relation.clock())

    def _chunks(self, position: Position | None) -> list[Slice]:
        """Return what is left of a round through the table, or a new round."""
        rounds = _rounds(position)
        key = self._relation.key()
        if key is None:
            return [self._whole(position, {"rounds": rounds + 1})]
        begun = position if position is not None and position.get("by") == key.name else None
        if begun is None and position is not None and "by" in position and self._adds:
            raise unsuitable(
                self._source,
                key.name,
                f'Half of the table was read by column "{position["by"]}"; rows would be added twice.',
                f"Finish with chunks: {{column: {position['by']}}}.",
            )
        top = begun["top"] if begun is not None else self._relation.highest(key)
        if top is None:
            if not self._relation.nulls(key):
                return []
            return [self._whole(position, {"rounds": rounds + 1})]
        bounds = Bounds(begun["above"] if begun else None, top, with_nulls=begun is None)

        def end(reached: str) -> Position:
            if reached == top:
                return {"rounds": rounds + 1}
            return {"rounds": rounds, "by": key.name, "above": reached, "top": top}

        return list(self._slices(key, bounds, position, end, self._relation.clock()))

    @property
    def _adds(self) -> bool:
        return not self._opening.pipeline.is_keyed

    # --- what is new -----------------------------------------------------------------------------

    def _new_rows(self, cursor: str, position: Position | None) -> list[Slice]:
        """Return what lies beyond the last value. In modes that add rows, as far as all of it is there; in
        others up to the highest value, and again from where all of it was there."""
        source, relation = self._source, self._relation
        settled = self._settled(cursor)  # before the snapshot is taken
        column = relation.column(cursor)
        if settled is not None and settled.sees_transactions:
            check_same_server(relation, source, column)
        last: str | None = position["cursor"] if position is not None else None
        nulls = relation.nulls(column)
        if nulls and source.nulls == "error":
            raise NullCursor(source.reads, column.name, nulls)
        with_nulls = bool(nulls) and source.nulls == "include"
        top = relation.highest(column)
        left_out = f", {nulls} rows without it left out" if nulls and source.nulls == "skip" else ""
        if top is None:
            if not with_nulls:
                return []
            alone = relation.inside(column, Bounds(None, None, with_nulls=True))
            told = f"{nulls} rows of {self._name} without {column.name}"
            return [Slice(position, position or {"cursor": None}, new_run_id(), 0, told, _Part((alone,)))]
        self._check_values(column, top)
        complete = top if settled is None else self._complete(column, settled)
        if not self._repeats and source.lag is not None and complete is not None:
            until = self._before(column, complete, source.lag)
            complete = relation.highest(column, relation.up_to(column, until, is_closed=True))
        newest = top
        if not self._repeats:
            if complete is None or (last is not None and self._is_empty(column, last, complete)):
                self._note_waiting(column, last, newest, settled)
                return []
            top = complete
        above = self._first(column, last)
        is_closed = self._repeats and (
            source.is_closed(self._opening.pipeline.mode) or source.lag is not None
        )
        if not is_closed and last is not None and not with_nulls and self._is_empty(column, last, top):
            return []
        bounds = Bounds(above, top, is_closed and above is not None, with_nulls)
        # What was deleted, or set back, does not take the position back with it.
        is_further = complete is not None and (last is None or not self._is_empty(column, last, complete))
        furthest = complete if is_further else last
        if settled is not None and (settled.waits or settled.is_ahead):
            self._note_waiting(column, furthest, newest, settled)
        slices = self._by_cursor(column, bounds, position, furthest, is_further=is_further)
        return [_with_note(piece, left_out) for piece in slices]

    def _by_cursor(
        self,
        column: DatabaseColumn,
        bounds: Bounds,
        position: Position | None,
        furthest: str | None,
        *,
        is_further: bool,
    ) -> Iterator[Slice]:
        """Yield the slices of what is new. Their positions end at `furthest`: what lies beyond it is read
        again. Where that is not further than the last one, they stay there."""
        assert bounds.top is not None
        until, is_cut = moment_of(bounds.top), self._source.chunks is not None
        if is_cut and is_further:
            known = replace(bounds, top=furthest)
            for piece in self._slices(column, known, position, lambda value: {"cursor": value}, until):
                position = piece.end
                yield piece
            if furthest == bounds.top:
                return
            bounds = Bounds(furthest, bounds.top)
        yield from self._slices(
            column, bounds, position, lambda _: {"cursor": furthest}, until, is_cut=is_cut
        )

    def _check_values(self, column: DatabaseColumn, top: str) -> None:
        """Raise CursorUnsuitable for a column whose highest value nothing can lie beyond."""
        check_end(self._source, column, top)
        if kinds := self._relation.kinds(column):
            raise unsuitable(
                self._source,
                column.name,
                f"It holds {' and '.join(kinds)}, and {kinds[0]} never lie beyond {kinds[-1]}: what comes "
                "later would never be read.",
                f"Make all values {kinds[0]}, in the database or with query:.",
            )

    @property
    def _repeats(self) -> bool:
        """Rows that are read again change nothing."""
        return self._opening.pipeline.mode in REPEATABLE

    def _settled(self, cursor: str) -> Settled | None:
        """Return up to where no running transaction adds rows; None where none is looked at."""
        source, opening = self._source, self._opening
        if source.cursor_order == "commit":
            return None
        if not self._relation.dialect.has_snapshots:
            return bounded_by_clock(self._relation, self._relation.column(cursor))
        state, project = opening.state, opening.engine.project.state_key
        moving = Relation(opening.engine, source, is_moving=True)
        with closing(moving):
            column = moving.column(cursor)
            of = kept_for(moving, source, column)
            marks = read_marks(state, project, opening.name, of) if state is not None else []

            def keep(found: Sequence[CursorMark]) -> None:
                if state is not None:
                    keep_marks(state, project, opening.name, of, found)

            return settle(moving, source, column, marks, keep, is_patient=not self._repeats)

    def _complete(self, column: DatabaseColumn, settled: Settled) -> str | None:
        """Return the highest value up to which all rows are there. Rows that are going to be read again may
        be joined by others with the same value."""
        if settled.top is None:
            return None
        source = self._source
        is_read_again = self._repeats and source.is_closed(self._opening.pipeline.mode)
        is_closed = is_read_again or self._is_unique(column)
        return self._relation.highest(column, self._relation.up_to(column, settled.top, is_closed=is_closed))

    def _is_unique(self, column: DatabaseColumn) -> bool:
        relation = self._relation
        return relation.dialect.has_snapshots and is_unique(relation, self._source, column)

    def _note_waiting(
        self, column: DatabaseColumn, last: str | None, top: str, settled: Settled | None
    ) -> None:
        """Tell why rows up to the highest value are not read yet, or not for good."""
        if last is not None and self._is_empty(column, last, top):
            return
        rows = f"rows of {self._name} by {column.name}" + (f" beyond {last}" if last is not None else "")
        if settled is not None and settled.waits:
            why = f"may be joined by lower values: transactions are still running ({settled.waits})"
        elif settled is not None and settled.is_ahead:
            until = "are read again by each run" if self._repeats else "wait"
            why = f"{until} until the database's clock gets there: some lie ahead of it"
        elif self._source.lag is not None:
            why = "wait for lag"
        elif settled is not None and not self._is_unique(column):
            why = "wait for a higher value: others may have the same one"
        else:
            return  # they have come since the run began
        self._notes += (f"{rows} {why}",)

    def _is_empty(self, column: DatabaseColumn, last: str, top: str) -> bool:
        """Tell whether nothing lies beyond the last value."""
        if last == top:
            return True
        return not self._relation.has(self._relation.inside(column, Bounds(last, top)))

    def _first(self, column: DatabaseColumn, last: str | None) -> str | None:
        lag = self._source.lag
        return last if last is None or lag is None or not self._repeats else self._before(column, last, lag)

    def _before(self, column: DatabaseColumn, value: str, lag: timedelta | int) -> str:
        """Return the value that lies so far before another. Raises CursorUnsuitable."""
        if value == _LOWEST:
            return value
        try:
            return earlier(value, lag)
        except ValueError:
            is_number = isinstance(lag, int)
            raise unsuitable(
                self._source,
                column.name,
                f'Its last value is "{value}", and lag: is {"a number" if is_number else "a time"}.',
                f"Write {'a time, such as lag: 10m' if is_number else 'a number, such as lag: 1000'}.",
            ) from None

    # --- both ------------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        return (self._source.chunks or Chunks()).size

    def _slices(
        self,
        column: DatabaseColumn,
        bounds: Bounds,
        position: Position | None,
        end: Callable[[str], Position],
        until: datetime | None,
        *,
        is_cut: bool = True,
    ) -> Iterator[Slice]:
        """Yield slices of some chunks each. A position lies at the end of each."""
        cut: Iterator[Bounds] = iter((bounds,))
        if is_cut:
            cut = self._relation.cut(column, bounds, self._size)
        while chunks := tuple(islice(cut, self._source.connections)):
            reached = chunks[-1].top
            assert reached is not None
            after = end(reached)
            above = f"beyond {bounds.above} " if position is not None and bounds.above is not None else ""
            told = f"rows of {self._name} by {column.name} {above}up to {reached}"
            conditions = tuple(self._relation.inside(column, chunk) for chunk in chunks)
            yield Slice(position, after, new_run_id(), 0, told, _Part(conditions), until=until)
            position = after
            bounds = Bounds(reached, bounds.top)


def _rounds(position: Position | None) -> int:
    return int(position.get("rounds", 0)) if position is not None else 0


def _with_note(piece: Slice, note: str) -> Slice:
    return replace(piece, summary=piece.summary + note) if note else piece
