"""SQL as each database writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from esker.engine.jdbc import DatabaseColumn
from esker.project.sources.jdbc import name_parts
from esker.project.types import Column, Decimal, Plain, Type, quoted

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_MOST_DIGITS = 38
_ORDERED = {
    *("int2", "int4", "int8", "serial", "smallserial", "bigserial", "numeric"),
    *("date", "timestamp", "timestamptz"),
}
"""Types of PostgreSQL whose ranges make chunks."""
_NUMBERS = ("int", "tinyint", "smallint", "mediumint", "bigint", "decimal")
_WHOLE = {
    *("int2", "int4", "int8", "serial", "smallserial", "bigserial"),
    *("int", "integer", "tinyint", "smallint", "mediumint", "bigint"),
}
_TIMES = ("date", "timestamp", "timestamptz")
_FIRST_AND_LAST = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
_ISO = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_SECONDS = (100_000_000, 253_402_300_799)
"""Numbers that are taken as seconds since 1970: from 1973 to 9999."""


@dataclass(frozen=True)
class Dialect:
    """PostgreSQL."""

    has_snapshots: bool = True
    reads_in_parallel: bool = True
    """Chunks of a batch are queries of their own, several at once."""
    is_text: bool = False
    """Values are read as texts, and parsed as their columns' types."""
    mark: str = '"'
    """What stands around names."""
    listed_tables: str = (
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\\_%' "
        "AND n.nspname <> 'information_schema' ORDER BY 1, 2"
    )
    """A query for schema and name of all tables. Partitions are read with their table."""
    listed_keys: str = (
        "SELECT n.nspname, c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number "
        "WHERE i.indisprimary AND k.place <= i.indnkeyatts ORDER BY 1, 2, k.place"
    )
    """A query for the columns of their primary keys."""
    default_schema: str = "SELECT current_schema()"
    clock: str = "SELECT extract(epoch FROM now())"
    """A query for the time by the database's clock, in seconds since 1970."""
    remedy_for_timeless: str = (
        "Leave out rows with infinity or -infinity, or give them a time, with query: in the place of table:."
    )

    def name(self, column: DatabaseColumn) -> str:
        """Return a column's name in quotes. Dots are a part of it."""
        return self.mark + column.name.replace(self.mark, 2 * self.mark) + self.mark

    def table(self, text: str) -> str:
        """Return a table's name in quotes, with its schema, if that stands before a dot."""
        return ".".join(self.name(DatabaseColumn(part, "", False)) for part in name_parts(text))

    def literal(self, value: str, column: DatabaseColumn) -> str:
        """Return a value of a column. A text takes the type of what it is compared with."""
        return "'" + value.replace("'", "''") + "'"

    def as_text(self, expression: str) -> str:
        """Return a value as a text from which it can be made again."""
        return f"CAST({expression} AS text)"

    def is_ordered(self, column: DatabaseColumn) -> bool:
        """Tell whether a primary key is a number or a date."""
        return column.type in _ORDERED

    def is_whole(self, column: DatabaseColumn) -> bool:
        """Tell whether a column's type lets nothing in but whole numbers."""
        return column.type in _WHOLE

    def is_time(self, column: DatabaseColumn) -> bool:
        """Tell whether a column's type is a time; values without a zone are UTC."""
        return column.type in _TIMES

    def is_date(self, column: DatabaseColumn) -> bool:
        """Tell whether a column knows days only. A day is read when it is over."""
        return column.type == "date"

    def earliest(self, column: DatabaseColumn) -> str:
        """Return the lowest time as seconds since 1970, written so that an index helps where there is one."""
        return f"extract(epoch FROM min({self.name(column)}))"

    def between(self, column: DatabaseColumn, since: datetime, until: datetime) -> str:
        """Return the condition of a window, written so that an index helps where there is one."""
        quoted = self.name(column)
        start, end = (self._moment(moment, column) for moment in (since, until))
        return f"{quoted} >= {start} AND {quoted} < {end}"

    def timeless(self, column: DatabaseColumn) -> str | None:
        """Return the condition of values that lie in no window; None where the type lets none in."""
        return f"{self.name(column)} IN ('infinity', '-infinity')"

    def kind_of_value(self, column: DatabaseColumn) -> str | None:
        """Return what kind a value is of; None where a column's type lets in one kind only."""
        return None

    def _moment(self, moment: datetime, column: DatabaseColumn) -> str:
        # For a column without a zone PostgreSQL leaves out what stands after the time.
        return f"'{moment:%Y-%m-%d}'" if self.is_date(column) else f"'{moment:%Y-%m-%d %H:%M:%S}+00'"

    def selected(self, columns: tuple[DatabaseColumn, ...], asked_by: str | None) -> str:
        """Return what stands between SELECT and FROM. The column that ranges are of stays as it is: its index
        would not help any more."""
        if all(column.type != "timestamp" or column.name == asked_by for column in columns):
            return "*"
        return ", ".join(
            self._finite(column)
            if column.type == "timestamp" and column.name != asked_by
            else self.name(column)
            for column in columns
        )

    def _finite(self, column: DatabaseColumn) -> str:
        """Return times as Spark reads infinity in all types but this one, of which it reads no row."""
        quoted, (first, last) = self.name(column), _FIRST_AND_LAST
        return (
            f"CASE {quoted} WHEN 'infinity' THEN timestamp '{last}' WHEN '-infinity' "
            f"THEN timestamp '{first}' ELSE {quoted} END AS {quoted}"
        )

    def schema(self, columns: tuple[DatabaseColumn, ...]) -> str | None:
        """Return the types that Spark is to use, where the driver's are wrong."""
        return None


@dataclass(frozen=True)
class SqliteDialect(Dialect):
    """SQLite. A column's type is a wish there: each value has its own.

    Its driver returns 0 for a text in a column of numbers, and cuts large numbers. So values come as texts,
    and those that are not what the column says are found like those of a file.
    """

    has_snapshots: bool = False
    # A file on this machine, whose readers may hold up its writers: one query, as short as it can be.
    reads_in_parallel: bool = False
    is_text: bool = True
    listed_tables: str = (
        "SELECT schema, name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') "
        "AND name NOT LIKE 'sqlite#_%' ESCAPE '#' ORDER BY 1, 2"
    )
    listed_keys: str = (
        "SELECT t.schema, t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c "
        "WHERE t.schema = 'main' AND c.pk > 0 ORDER BY 1, 2, c.pk"
    )
    default_schema: str = "SELECT 'main'"
    clock: str = "SELECT (julianday('now') - 2440587.5) * 86400"
    remedy_for_timeless: str = (
        "Times are texts such as 2026-11-01 12:00:00 or seconds since 1970. Make others into such, "
        "with query:."
    )

    def literal(self, value: str, column: DatabaseColumn) -> str:
        # What is compared with a column gets its affinity; an expression of a query has none.
        if not column.type and _NUMBER.fullmatch(value):
            return value
        return super().literal(value, column)

    def as_text(self, expression: str) -> str:
        return _text(expression, 17)

    def is_ordered(self, column: DatabaseColumn) -> bool:
        return "int" in column.type

    def is_whole(self, column: DatabaseColumn) -> bool:
        return False  # values tell

    def is_time(self, column: DatabaseColumn) -> bool:
        return True  # values tell, and `timeless` finds those that are none

    def is_date(self, column: DatabaseColumn) -> bool:
        return False

    def earliest(self, column: DatabaseColumn) -> str:
        return f"min({self._seconds(column)})"

    def _seconds(self, column: DatabaseColumn) -> str:
        # Texts as SQLite's own functions read them; a day without a time counts as its end, so that it is
        # read when it is over. Numbers are seconds since 1970, unless that would be before 1973: they are ids
        # then, or days.
        value, (least, most) = self.name(column), _SECONDS
        return (
            f"CASE WHEN typeof({value}) = 'text' AND {value} GLOB '{_ISO}*' THEN "
            f"CAST(strftime('%s', {value}) AS INTEGER) + CASE length({value}) WHEN 10 THEN 86399 ELSE 0 END "
            f"WHEN typeof({value}) IN ('integer', 'real') AND {value} BETWEEN {least} AND {most} "
            f"THEN CAST({value} AS INTEGER) END"
        )

    def between(self, column: DatabaseColumn, since: datetime, until: datetime) -> str:
        start, end = (int(moment.timestamp()) for moment in (since, until))
        return f"{self._seconds(column)} >= {start} AND {self._seconds(column)} < {end}"

    def timeless(self, column: DatabaseColumn) -> str:
        return f"{self.name(column)} IS NOT NULL AND {self._seconds(column)} IS NULL"

    def kind_of_value(self, column: DatabaseColumn) -> str:
        # In its order all numbers come before all texts, and these before all bytes.
        kind = f"typeof({self.name(column)})"
        return f"CASE {kind} WHEN 'text' THEN 'texts' WHEN 'blob' THEN 'bytes' ELSE 'numbers' END"

    def selected(self, columns: tuple[DatabaseColumn, ...], asked_by: str | None) -> str:
        return ", ".join(
            self.name(c) if _is_binary(c) else f"{_text(self.name(c), _digits(c))} AS {self.name(c)}"
            for c in columns
        )

    def schema(self, columns: tuple[DatabaseColumn, ...]) -> str:
        return ", ".join(f"{quoted(c.name)} {'BINARY' if _is_binary(c) else 'STRING'}" for c in columns)

    def sent(self, columns: tuple[DatabaseColumn, ...]) -> tuple[Column, ...]:
        """Return the columns with the types that their declared ones mean."""
        return tuple(Column(column.name, _type(column.type)) for column in columns)


@dataclass(frozen=True)
class MariaDbDialect(Dialect):
    """MariaDB and MySQL. Snapshots cannot be shared there: what must be of one moment is one query."""

    has_snapshots: bool = False
    mark: str = "`"
    listed_tables: str = (
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN "
        "('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1, 2"
    )
    listed_keys: str = (
        "SELECT table_schema, table_name, column_name FROM information_schema.key_column_usage "
        "WHERE constraint_name = 'PRIMARY' ORDER BY 1, 2, ordinal_position"
    )
    default_schema: str = "SELECT database()"
    clock: str = "SELECT unix_timestamp(now(6))"

    def literal(self, value: str, column: DatabaseColumn) -> str:
        # A number in quotes would be compared as a double, which has fewer digits.
        if column.type.startswith(_NUMBERS) and _NUMBER.fullmatch(value):
            return value
        return super().literal(value.replace("\\", "\\\\"), column)

    def as_text(self, expression: str) -> str:
        return f"CAST({expression} AS CHAR)"

    def is_ordered(self, column: DatabaseColumn) -> bool:
        return column.type.startswith((*_NUMBERS, *_TIMES, "datetime"))

    def is_time(self, column: DatabaseColumn) -> bool:
        return column.type.startswith((*_TIMES, "datetime"))

    def earliest(self, column: DatabaseColumn) -> str:
        # unix_timestamp() knows no time before 1970, and in some releases none after 2038.
        lowest = f"min({self.name(column)})"
        return f"timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {lowest}) / 1000000"

    def timeless(self, column: DatabaseColumn) -> str | None:
        return None

    def selected(self, columns: tuple[DatabaseColumn, ...], asked_by: str | None) -> str:
        return "*"

    def _moment(self, moment: datetime, column: DatabaseColumn) -> str:
        # Sessions run in UTC.
        if self.is_date(column):
            return f"DATE'{moment:%Y-%m-%d}'"
        return f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S}'"


def dialect_of(kind: str) -> Dialect:
    return {"sqlite": SqliteDialect(), "mariadb": MariaDbDialect()}.get(kind, Dialect())


def _text(expression: str, digits: int) -> str:
    return (
        f"CASE typeof({expression}) WHEN 'real' THEN printf('%!.{digits}g', {expression}) "
        f"ELSE CAST({expression} AS TEXT) END"
    )


def _digits(column: DatabaseColumn) -> int:
    """Return how many digits tell a number: all of a double, and of a decimal those that were written."""
    return 15 if isinstance(_type(column.type), Decimal) else 17


def _is_binary(column: DatabaseColumn) -> bool:
    return _type(column.type) == Plain("binary")


def _type(declared: str) -> Type:
    """Return what a declared type of SQLite means, by its rules of affinity."""
    found = _DECIMAL.search(declared)
    if "int" in declared:
        return Plain("bigint")
    if any(word in declared for word in ("char", "clob", "text")):
        return Plain("string")
    if "blob" in declared:
        return Plain("binary")
    if any(word in declared for word in ("real", "floa", "doub")):
        return Plain("double")
    if "bool" in declared:
        return Plain("boolean")
    if found and int(found[1]) <= _MOST_DIGITS:
        return Decimal(int(found[1]), int(found[2] or 0))
    # Dates are texts or numbers there; the project file may say what they are.
    return Plain("string")
