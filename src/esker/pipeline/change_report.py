"""The first changes of a range, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from esker.changes.ranges import ChangeRange


@dataclass(frozen=True)
class Changes:
    """Changes of a table, oldest first."""

    table: str
    since: int
    """Changesets after this one…"""
    until: int
    """…up to this one."""
    columns: tuple[str, ...]
    rows: list[Mapping[str, Any]]
    count: int
    """All changes in this range; `rows` may hold fewer."""

    @classmethod
    def of(cls, changes: ChangeRange, limit: int) -> Changes:
        """Return the first changes of a range."""
        first = changes.first(limit)
        columns = [(field.name, field.type, first.column(field.name)) for field in changes.schema]
        rows = [
            {name: _as_spark(column[number].as_py(), kind) for name, kind, column in columns}
            for number in range(first.num_rows)
        ]
        names = tuple(changes.schema.names)
        return cls(changes.table, changes.since, changes.until, names, list(rows), changes.count())

    def as_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "since": self.since,
            "until": self.until,
            "count": self.count,
            "changes": [dict(row) for row in self.rows],
        }


def _as_spark(value: Any, kind: pa.DataType) -> Any:
    """Return a value of Arrow's as it would come from Spark: the same, whoever has read it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {_as_spark(key, kind.key_type): _as_spark(inner, kind.item_type) for key, inner in value}
    if pa.types.is_struct(kind):
        return {field.name: _as_spark(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_as_spark(inner, kind.value_type) for inner in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(kind, pa.UuidType):
        return str(value)
    return value
