"""SQL as each database writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from esker.engine.jdbc import DatabaseColumn
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
_TIMES = ("date", "timestamp", "timestamptz")


@dataclass(frozen=True)
class Dialect:
    """PostgreSQL."""

    has_snapshots: bool = True
    is_text: bool = False
    """Values are read as texts, and parsed as their columns' types."""
    mark: str = '"'
    """What stands around names."""

    def name(self, column: DatabaseColumn) -> str:
        """Return a column's name in quotes. Dots are a part of it."""
        return self.mark + column.name.replace(self.mark, 2 * self.mark) + self.mark

    def table(self, text: str) -> str:
        """Return a table's name in quotes, with its schema, if that stands before a dot."""
        return ".".join(self.name(DatabaseColumn(part, "", False)) for part in text.split("."))

    def literal(self, value: str, column: DatabaseColumn) -> str:
        """Return a value of a column. A text takes the type of what it is compared with."""
        return "'" + value.replace("'", "''") + "'"

    def as_text(self, expression: str) -> str:
        """Return a value as a text from which it can be made again."""
        return f"CAST({expression} AS text)"

    def is_ordered(self, column: DatabaseColumn) -> bool:
        """Tell whether a primary key is a number or a date."""
        return column.type in _ORDERED

    def is_time(self, column: DatabaseColumn) -> bool:
        return column.type in _TIMES

    def selected(self, columns: tuple[DatabaseColumn, ...]) -> str:
        """Return what stands between SELECT and FROM."""
        return "*"

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
    is_text: bool = True

    def literal(self, value: str, column: DatabaseColumn) -> str:
        # What is compared with a column gets its affinity; an expression of a query has none.
        if not column.type and _NUMBER.fullmatch(value):
            return value
        return super().literal(value, column)

    def as_text(self, expression: str) -> str:
        return _text(expression, 17)

    def is_ordered(self, column: DatabaseColumn) -> bool:
        return "int" in column.type

    def is_time(self, column: DatabaseColumn) -> bool:
        return False

    def selected(self, columns: tuple[DatabaseColumn, ...]) -> str:
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
    """MariaDB and MySQL. Snapshots cannot be shared there: each batch is one query."""

    has_snapshots: bool = False
    mark: str = "`"

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
