"""Read a database: a whole table in chunks, or what is new by a cursor.

The end of a run is fixed when it is planned: rows that arrive later belong to the next one. In PostgreSQL
all queries of a run see one snapshot. Elsewhere a mode that takes all rows together is one query, and chunks
of others are queries of their own (in SQLite those of a batch are one): a row that moves to another chunk
meanwhile may come twice or wait for the next round, as it may between batches. Rows are kept until they
are loaded, so that none is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.jdbc import DatabaseColumn
from esker.engine.kept import KeptFrames
from esker.errors import NullCursor
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.modes import SWAPPING
from esker.project.sources import JdbcSource
from esker.project.sources.jdbc import Chunks
from esker.project.types import Column, columns_from_json
from esker.sources.jdbc.cursor import earlier, moment_of
from esker.sources.jdbc.database import Bounds, Relation, unsuitable
from esker.sources.jdbc.dialect import SqliteDialect
from esker.sources.jdbc.timed import TimedTable, WindowedTexts
from esker.sources.source import ORIGIN, Opening, Reader, Sent, Slice
from esker.sources.span import Span
from esker.sources.windowed import WindowedReader

_PEEKED = 100
_ENDLESS = ("infinity", "nan", "inf")
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
        if self._span is not None:
            return [self._whole(position, position)]
        if self._source.cursor is not None:
            return self._new_rows(self._source.cursor, position)
        if self._opening.pipeline.mode in SWAPPING:
            # Partitions and keys that are spread over chunks would be swapped for a part of them.
            return [self._whole(position, {"rounds": _rounds(position) + 1})]
        return self._chunks(position)

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
        source, relation = self._source, self._relation
        column = relation.column(cursor)
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
        if top.lower() in _ENDLESS:
            raise unsuitable(
                source,
                column.name,
                f'Its highest value is "{top}": nothing would ever lie beyond it.',
                "Leave such rows out with query:, or choose another column.",
            )
        if kinds := relation.kinds(column):
            raise unsuitable(
                source,
                column.name,
                f"It holds {' and '.join(kinds)}, and {kinds[0]} never lie beyond {kinds[-1]}: what comes "
                "later would never be read.",
                f"Make all values {kinds[0]}, in the database or with query:.",
            )
        above = self._first(column, last)
        is_closed = source.is_closed(self._opening.pipeline.mode) or source.lag is not None
        bounds = Bounds(above, top, is_closed and above is not None, with_nulls)
        # What was deleted, or set back, does not take the position back with it.
        furthest = top if last is None or not self._is_empty(column, last, top) else last
        if not is_closed and last is not None and furthest == last and not with_nulls:
            return []

        def end(reached: str) -> Position:
            return {"cursor": furthest if reached == top else reached}

        until = moment_of(top)
        slices = list(self._slices(column, bounds, position, end, until, is_cut=source.chunks is not None))
        return [_with_note(piece, left_out) for piece in slices]

    def _is_empty(self, column: DatabaseColumn, last: str, top: str) -> bool:
        """Tell whether nothing lies beyond the last value."""
        if last == top:
            return True
        return not self._relation.has(self._relation.inside(column, Bounds(last, top)))

    def _first(self, column: DatabaseColumn, last: str | None) -> str | None:
        lag = self._source.lag
        if last is None or lag is None or last == _LOWEST:
            return last
        try:
            return earlier(last, lag)
        except ValueError:
            is_number = isinstance(lag, int)
            raise unsuitable(
                self._source,
                column.name,
                f'Its last value is "{last}", and lag: is {"a number" if is_number else "a time"}.',
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
