"""One table or query of a database: what it has, where its values begin and end, and its rows as frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame

from esker.engine.jdbc import Address, Connection, DatabaseColumn, connect, jdbc_frame
from esker.engine.session import Engine
from esker.errors import CursorUnsuitable, SourceRefused
from esker.project.sources import JdbcSource
from esker.project.sources.jdbc import name_parts
from esker.sources.jdbc.dialect import Dialect, dialect_of

_ROWS = "esker_rows"
_LOOKED_AT = 1_000
"""Values of a key that are looked at to see how close they are."""
_ENDLESS = ("infinity", "nan", "inf")
_SPARSE = 4
"""Where there are more numbers than so many for a row, rows are counted instead."""


@dataclass(frozen=True)
class Bounds:
    """A range of a column: what lies beyond `above` (or at it, if closed), up to and including `top`."""

    above: str | None
    top: str | None
    is_closed: bool = False
    with_nulls: bool = False


class Relation:
    """A table or query, as one connection sees it. In PostgreSQL that is one state of the database.

    With `is_moving`, each query sees what is there when it begins, and nothing is held between them.
    """

    def __init__(self, engine: Engine, source: JdbcSource, *, is_moving: bool = False) -> None:
        self._engine, self._source = engine, source
        self.dialect: Dialect = dialect_of(source.kind)
        self._holds_snapshot = self.dialect.has_snapshots and not is_moving
        self._connection: Connection | None = None
        self._holder: Connection | None = None
        self._snapshot: str | None = None

    @cached_property
    def address(self) -> Address:
        return address_of(self._engine, self._source)

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            if self._holds_snapshot:
                self._holder = connect(self._engine, self.address)
                self._snapshot = self._holder.hold_snapshot(self._no_rows)
            self._connection = connect(self._engine, self.address)
            if self._snapshot is not None:
                self._connection.enter_snapshot(self._snapshot)
        return self._connection

    def close(self) -> None:
        """Give back the connections, and with them the snapshot."""
        self.release()
        self.__dict__.pop("columns", None)

    def release(self) -> None:
        """Do the same, and go on knowing the columns."""
        for connection in (self._connection, self._holder):
            if connection is not None:
                connection.close()
        self._connection, self._holder, self._snapshot = None, None, None

    @cached_property
    def columns(self) -> tuple[DatabaseColumn, ...]:
        return self.connection.columns(self._no_rows)

    @property
    def _no_rows(self) -> str:
        return f"SELECT * FROM {self._from} WHERE 1 = 0"

    @property
    def _from(self) -> str:
        if self._source.table is not None:
            return self.dialect.table(self._source.table)
        # A query may end with a comment.
        return f"({self._source.query}\n) AS {_ROWS}"

    @property
    def _asked_by(self) -> str | None:
        """The column that ranges are declared to be of, as the database names it."""
        chunks = self._source.chunks
        wanted = self._source.cursor or (chunks.column if chunks is not None else None)
        return self.column(wanted).name if wanted is not None else None

    def column(self, wanted: str) -> DatabaseColumn:
        """Return a column by its name, or raise SourceRefused."""
        for is_same in (wanted.__eq__, lambda found: found.lower() == wanted.lower()):
            for column in self.columns:
                if is_same(column.name):
                    return column
        known = ", ".join(f'"{column.name}"' for column in self.columns)
        raise SourceRefused(self._source.reads, f'It has no column "{wanted}"; it has {known}.')

    def key(self) -> DatabaseColumn | None:
        """Return what a whole table is cut by: a declared column, or a primary key of one number or date."""
        declared = self._source.chunks.column if self._source.chunks is not None else None
        if declared is not None:
            return self.column(declared)
        if self._source.table is None:
            return None
        names = self._primary_key()
        # The key is looked up by name: it may be that of another table, which this one's place in the search
        # path hides.
        column = next((each for each in self.columns if [each.name] == names), None)
        return column if column is not None and self.dialect.is_ordered(column) else None

    def _primary_key(self) -> list[str]:
        assert self._source.table is not None
        *schema, table = name_parts(self._source.table)
        return self.connection.primary_key(schema[-1] if schema else None, table)

    def nulls(self, column: DatabaseColumn) -> int:
        """Return how many rows have no value in a column."""
        if not column.may_be_null:
            return 0
        return self.count(f"{self.dialect.name(column)} IS NULL")

    def highest(self, column: DatabaseColumn, within: str | None = None) -> str | None:
        """Return the highest value of a column, among rows of a condition; None where there is none."""
        # Not max(): PostgreSQL has none for some types that it can put in order.
        quoted = self.dialect.name(column)
        found = self.connection.rows(
            f"SELECT {self._value(column)} FROM {self._from} WHERE {within or f'{quoted} IS NOT NULL'} "
            f"ORDER BY {quoted} DESC LIMIT 1"
        )
        return found[0][0] if found else None

    def kinds(self, column: DatabaseColumn) -> list[str]:
        """Return the kinds of the lowest and the highest value of a column, where that is several."""
        kind, quoted = self.dialect.kind_of_value(column), self.dialect.name(column)
        if kind is None:
            return []
        found = [
            self.connection.rows(
                f"SELECT {kind} FROM {self._from} WHERE {quoted} IS NOT NULL ORDER BY {quoted} {way} LIMIT 1"
            )
            for way in ("ASC", "DESC")
        ]
        kinds = dict.fromkeys(str(value) for rows in found for [value] in rows)
        return list(kinds) if len(kinds) > 1 else []

    def count(self, condition: str) -> int:
        """Return how many such rows there are."""
        [[count]] = self.connection.rows(f"SELECT count(*) FROM {self._from} WHERE {condition}")
        return int(count or 0)

    def has_more(self, condition: str, rows: int) -> bool:
        """Tell whether there are more such rows; no more than that many are counted."""
        counted = f"SELECT 1 AS one FROM {self._from} WHERE {condition} LIMIT {rows + 1}"
        [[count]] = self.connection.rows(f"SELECT count(*) FROM ({counted}) AS esker_counted")
        return int(count or 0) > rows

    def has(self, condition: str) -> bool:
        """Tell whether there is such a row."""
        return bool(self.connection.rows(f"SELECT 1 FROM {self._from} WHERE {condition} LIMIT 1"))

    def cut(self, column: DatabaseColumn, bounds: Bounds, size: int) -> Iterator[Bounds]:
        """Yield ranges of about so many rows each, in order. Rows with the same value stay together.

        Each is found by going so many entries along the index: gaps and crowds in the values do not matter.
        Of a primary key of whole numbers some are looked at, and the rest is counted off.
        """
        above, is_closed, with_nulls = bounds.above, bounds.is_closed, bounds.with_nulls
        is_counted = size >= 10 * _LOOKED_AT and self._is_counted(column)
        while True:
            inside = self.inside(column, Bounds(above, bounds.top, is_closed))
            top = self._counted_off(column, inside, size) if is_counted else None
            if top is None:
                top = self._nth(column, inside, size)
            elif bounds.top is not None and int(top) >= int(bounds.top):
                top = bounds.top
            top = bounds.top if top is None else top
            yield Bounds(above, top, is_closed, with_nulls)
            if top == bounds.top:
                return
            above, is_closed, with_nulls = top, False, False

    def _nth(self, column: DatabaseColumn, inside: str, number: int) -> str | None:
        """Return the value of the how many-th row of a range, in order; None where there are fewer."""
        found = self.connection.rows(
            f"SELECT {self._value(column)} FROM {self._from} WHERE {inside} "
            f"ORDER BY {self.dialect.name(column)} LIMIT 1 OFFSET {number - 1}"
        )
        return found[0][0] if found else None

    def _counted_off(self, column: DatabaseColumn, inside: str, size: int) -> str | None:
        """Return where a range of about so many rows ends, by how close its first values are; None where
        they are too few or too far apart to tell."""
        first, last = self._nth(column, inside, 1), self._nth(column, inside, _LOOKED_AT)
        if first is None or last is None:
            return None
        values = int(last) - int(first) + 1
        return None if values > _SPARSE * _LOOKED_AT else str(int(first) + size * values // _LOOKED_AT - 1)

    def _is_counted(self, column: DatabaseColumn) -> bool:
        """Tell whether a column is a primary key of whole numbers: no two rows have the same one."""
        if self._source.table is None or not self.dialect.is_whole(column):
            return False
        return self._primary_key() == [column.name]

    def _value(self, column: DatabaseColumn) -> str:
        # With a name of its own: in ORDER BY, the column's would mean this text.
        return f"{self.dialect.as_text(self.dialect.name(column))} AS esker_value"

    def up_to(self, column: DatabaseColumn, top: str, *, is_closed: bool) -> str:
        """Return the condition of what lies below a value, or at it, if closed."""
        sign = "<=" if is_closed else "<"
        return f"{self.dialect.name(column)} {sign} {self.dialect.literal(top, column)}"

    def not_above(self, column: DatabaseColumn, values: Sequence[str], top: str) -> list[bool]:
        """Tell of each value whether it lies at another or below, in the order of the column itself."""
        if not values:
            return []
        quoted = self.dialect.name(column)
        # Texts that stand under a column take its type and its order.
        parts = [f"SELECT -1 AS esker_number, {quoted} FROM {self._from} WHERE 1 = 0"]
        parts += [
            f"SELECT {number}, {self.dialect.literal(value, column)}" for number, value in enumerate(values)
        ]
        found = self.connection.rows(
            f"SELECT esker_number FROM ({' UNION ALL '.join(parts)}) AS esker_values "
            f"WHERE {self.up_to(column, top, is_closed=True)}"
        )
        numbers = {int(number or 0) for [number] in found}
        return [number in numbers for number in range(len(values))]

    def inside(self, column: DatabaseColumn, bounds: Bounds) -> str:
        """Return the condition of a range."""
        quoted, parts = self.dialect.name(column), []
        if bounds.above is not None:
            sign = ">=" if bounds.is_closed else ">"
            parts.append(f"{quoted} {sign} {self.dialect.literal(bounds.above, column)}")
        if bounds.top is not None:
            parts.append(f"{quoted} <= {self.dialect.literal(bounds.top, column)}")
        if not parts:
            return f"{quoted} IS NULL" if bounds.with_nulls else f"{quoted} IS NOT NULL"
        inside = " AND ".join(parts)
        return f"({inside} OR {quoted} IS NULL)" if bounds.with_nulls else f"({inside})"

    def clock(self) -> datetime | None:
        """Return the moment of what is seen, by the database's clock; None where it has none."""
        return self.now() if self.dialect.has_snapshots else None

    def now(self) -> datetime:
        """Return the time by the database's clock; a snapshot's is that of its beginning."""
        [[seconds]] = self.connection.rows(self.dialect.clock)
        return datetime.fromtimestamp(float(seconds or 0), UTC)

    def number(self, sql: str) -> float | None:
        """Return the one number that a SELECT list answers."""
        [[value]] = self.connection.rows(f"SELECT {sql} FROM {self._from}")
        return float(value) if value is not None else None

    def frame(self, conditions: Sequence[str] = (), limit: int | None = None) -> DataFrame:
        """Return the rows of these ranges: one query for each, or one for all in SQLite."""
        if self._holds_snapshot:
            _ = self.connection
        predicates: Sequence[str] = ()
        where = ""
        if self.dialect.reads_in_parallel and len(conditions) > 1:
            predicates = conditions
        elif conditions:
            where = f" WHERE {' OR '.join(f'({each})' for each in conditions)}"
        most = f" LIMIT {limit}" if limit is not None else ""
        chosen = self.dialect.selected(self.columns, self._asked_by)
        rows = f"(SELECT {chosen} FROM {self._from}{where}{most}) AS {_ROWS}"
        found = jdbc_frame(
            self._engine,
            self.address,
            rows,
            fetch_size=self._source.fetch_size,
            predicates=predicates,
            snapshot=self._snapshot,
            schema=self.dialect.schema(self.columns),
        )
        return found.coalesce(self._source.connections) if len(predicates) > 1 else found


def address_of(engine: Engine, source: JdbcSource) -> Address:
    """Return where a source's database is."""
    path = source.url.removeprefix("jdbc:sqlite:")
    return Address.of(source, str(Path(engine.project.path(path))))


def unsuitable(source: JdbcSource, column: str, why: str, remedy: str) -> CursorUnsuitable:
    return CursorUnsuitable(source.reads, column, why, remedy)


def check_end(source: JdbcSource, column: DatabaseColumn, top: str) -> None:
    """Raise CursorUnsuitable for a highest value that nothing can lie beyond."""
    if top.lower() in _ENDLESS:
        raise unsuitable(
            source,
            column.name,
            f'Its highest value is "{top}": nothing would ever lie beyond it.',
            "Leave such rows out with query:, or choose another column.",
        )
