"""How a table's files are laid out: partition transforms and sort order, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

Transform = Literal["identity", "year", "month", "day", "hour", "bucket", "truncate"]
_PLURALS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*\)\s*")


@dataclass(frozen=True)
class PartitionField:
    """One field of a partition spec, such as `bucket(16, id)`."""

    column: str
    transform: Transform = "identity"
    argument: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        inner = self.column if self.argument is None else f"{self.argument}, {self.column}"
        return f"{self.transform}({inner})"


def parse_partition_field(text: str) -> PartitionField:
    """Read `column`, `day(column)`, `bucket(16, column)` or `truncate(4, column)`."""
    if not set("(),") & set(text) and text.strip():
        return PartitionField(text.strip())
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(f'"{text}" is no partition field; write column, day(column) or bucket(16, column)')
    name, number, column = call.groups()
    name = _PLURALS.get(name.lower(), name.lower())
    if name not in get_args(Transform):
        raise ValueError(f'unknown transform "{name}"; known are {", ".join(get_args(Transform))}')
    takes_number = name in ("bucket", "truncate")
    if takes_number != (number is not None):
        form = f"{name}(16, {column})" if takes_number else f"{name}({column})"
        raise ValueError(f'"{text}" should read {form}; the number comes first')
    if number is not None and int(number) < 1:
        raise ValueError(f'"{text}": the number must be 1 or more')
    return PartitionField(column, cast(Transform, name), int(number) if number else None)


@dataclass(frozen=True)
class SortField:
    """One column by which rows are sorted within files."""

    column: str
    is_descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} desc" if self.is_descending else self.column


def parse_sort_field(text: str) -> SortField:
    """Read `column`, `column asc` or `column desc`."""
    column, _, direction = text.strip().rpartition(" ")
    if direction.lower() not in ("asc", "desc"):
        column, direction = text.strip(), "asc"
    if not column.strip() or set("(),") & set(column):
        raise ValueError(f'"{text}" is no sort field; write column or column desc')
    return SortField(column.strip(), direction.lower() == "desc")
