"""Where a value stands in a row, and how a condition on the value becomes one on the row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import isfinite
from typing import Any

from esker.project.types import literal, quoted


class Value(ABC):
    """A column, a field of a struct, the elements of a list, or the keys or values of a map."""

    name: str
    """As people call it: `place.city`, `tags.element`, `names.value`."""
    shown: str
    """SQL for what is shown of it: the value, or the list or map that it stands in."""
    lists: int
    """How many lists and maps it stands in."""

    @abstractmethod
    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        """Return SQL that is true if a test holds for it, wherever it occurs in the row.

        `test` turns SQL for the value into a condition. One that `sees_null` is about missing values.
        """

    def field(self, name: str) -> Value:
        """Return a field of it."""
        return _Field(self, name)

    def element(self) -> Value:
        """Return its elements."""
        return _Element(self, "element", "{}")

    def key(self) -> Value:
        """Return its keys."""
        return _Element(self, "key", "map_keys({})")

    def value(self) -> Value:
        """Return its values."""
        return _Element(self, "value", "map_values({})")


class ColumnValue(Value):
    """A column of the table."""

    lists = 0

    def __init__(self, name: str) -> None:
        self.name, self.shown = name, quoted(name)

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        return test(self.shown)


class _Field(Value):
    """A field of a struct; a struct that is missing breaks no rule on its fields."""

    def __init__(self, struct: Value, name: str) -> None:
        self._struct, self._field = struct, quoted(name)
        self.name, self.lists = f"{struct.name}.{name}", struct.lists
        self.shown = struct.shown if self.lists else f"{struct.shown}.{self._field}"

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        def inside(value: str) -> str:
            found = test(f"{value}.{self._field}")
            return f"({value} IS NULL OR ({found}))" if sees_null else found

        return self._struct.every(inside, sees_null)


class _Element(Value):
    """The elements of a list, or the keys or values of a map."""

    def __init__(self, holder: Value, part: str, items: str) -> None:
        self._holder, self._items, self.shown = holder, items, holder.shown
        self.name, self.lists = f"{holder.name}.{part}", holder.lists + 1

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        variable = f"e{self.lists}"
        inner = f"coalesce({test(variable)}, true)"

        def of_all(value: str) -> str:
            return f"forall({self._items.format(value)}, {variable} -> {inner})"

        return self._holder.every(of_all, sees_null=False)


def is_number(value: Any) -> bool:
    """Tell whether a value of a contract is a number that SQL knows: finite, of at most 38 digits."""
    if isinstance(value, bool):
        return False
    return abs(value) < 10**38 if isinstance(value, int) else isinstance(value, float) and isfinite(value)


def sql_value(value: Any, kind: str | None = None) -> str:
    """Return a value of a contract as SQL. `kind` is the logical type that it is compared with."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = literal(str(value))
    return f"{kind.upper()} {text}" if kind in ("date", "timestamp") else text
