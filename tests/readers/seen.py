"""What a reader sees of a table, in the same words for all readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from esker.project.types import Array, Column, Map, Plain, Struct, Type, ddl

PAST = 4
"""So many earlier snapshots are looked at; each is a query of each reader."""


@dataclass(frozen=True)
class Seen:
    """A table at one snapshot."""

    columns: tuple[tuple[str, str], ...]
    """Names and types, by the words of Spark."""
    rows: tuple[tuple[Any, ...], ...]
    """Sorted."""


def seen(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Seen:
    """Return rows as plain values that can be compared, whatever program they come from."""
    kinds = [column.type for column in columns]
    plain = (tuple(map(_plain, kinds, row)) for row in rows)
    # Of types that Spark has not, readers give what Spark gives, or something better.
    return Seen(tuple((c.name, ddl(c.type)) for c in columns), tuple(sorted(plain, key=repr)))


def _plain(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case Struct(fields):
            values = value.values() if isinstance(value, Mapping) else value
            return tuple(_plain(field.type, each) for field, each in zip(fields, values, strict=True))
        case Array(element):
            return tuple(_plain(element, each) for each in value)
        case Map(key, inner):
            pairs = value.items() if isinstance(value, Mapping) else value
            return tuple(sorted(((_plain(key, k), _plain(inner, v)) for k, v in pairs), key=repr))
    if kind == Plain("string") and not isinstance(value, str):
        return str(UUID(bytes=value) if isinstance(value, bytes) else value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo is not None else value.isoformat()
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


class Reader(Protocol):
    """A program that has opened a catalog."""

    def see(self, table: str, snapshot: int | None = None) -> Seen:
        """Return a table, as it is or as it was at a snapshot."""

    def history(self, table: str) -> list[int]:
        """Return the snapshots that the table has, oldest first."""


Opened = AbstractContextManager[Reader]


def agree(readers: Mapping[str, Reader], table: str) -> None:
    """See that all readers see the same rows, columns and history of a table; the first is the measure."""
    (first, measure), *others = readers.items()
    history = measure.history(table)
    points: list[int | None] = [None, *history[:-1][-PAST:]]
    expected = {point: measure.see(table, point) for point in points}
    for name, reader in others:
        assert reader.history(table) == history, f"{table}: {name} knows other snapshots than {first}"
        for point, what in expected.items():
            found = reader.see(table, point)
            assert found.columns == what.columns, f"{table} at {point}: {name} differs from {first}"
            assert found.rows == what.rows, f"{table} at {point}: {name} differs from {first}"
