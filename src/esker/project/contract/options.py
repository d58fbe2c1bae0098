"""Values of a contract that the standard leaves to tools: `customProperties`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from esker.project.contract.model import Amount, Limits
from esker.project.declaration import parse_share
from esker.project.document import Document, KeyPath

OF_TABLE = (
    "partitionBy",
    "sortBy",
    "format",
    "formatVersion",
    "compression",
    "targetFileSize",
    "tableProperties",
    "holdAbove",
    "failAbove",
)
OF_COLUMN = (
    "partitionTransform",
    "sortPosition",
    "sortDirection",
    "bloomFilter",
    "renamedFrom",
    "icebergType",
    "severity",
    "holdAbove",
    "failAbove",
)
OF_RULE = ("holdAbove", "failAbove", "against")


_LIKE = 0.85
"""How much a name must look like one of ours to be taken for it; others keep their own there."""


class Mistake(ValueError):
    """Something in a contract that cannot be, and where."""

    def __init__(self, path: KeyPath, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.path, self.message, self.remedy = path, message, remedy


class Options:
    """The custom properties at a place of a contract, each with its own place."""

    def __init__(self, document: Document, path: KeyPath) -> None:
        self._values: dict[str, tuple[Any, KeyPath]] = {}
        for index, each in enumerate(document.at((*path, "customProperties")) or ()):
            place = (*path, "customProperties", index, "value")
            # Others keep their own there: what is not meant for Esker is left alone.
            if each.get("vendor") in (None, "esker"):
                self._values[each["property"]] = each["value"], place
        self._path = path

    def get(self, name: str) -> Any:
        return self._values[name][0] if name in self._values else None

    def place(self, name: str) -> KeyPath:
        return self._values[name][1] if name in self._values else self._path

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise Mistake(self.place(name), f"{name} must be text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Mistake(self.place(name), f"{name} must be a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Mistake(self.place(name), f"{name} must be keys and values")
        return value

    def whole(self, name: str) -> int | None:
        value = self.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise Mistake(self.place(name), f"{name} must be a whole number")
        return value

    def limits(self) -> Limits:
        return Limits(self._limit("holdAbove"), self._limit("failAbove"))

    def _limit(self, name: str) -> Amount | None:
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return Amount(value)
        try:
            share = parse_share(value) if isinstance(value, str) else -1
        except ValueError:
            share = -1
        if not 0 <= share <= 1:
            raise Mistake(self.place(name), f"{name} must be a share such as 5%, or a number of rows")
        return Amount(share, is_share=True)


def misspelt(document: Document, path: KeyPath) -> Iterator[str]:
    """Yield, in words, custom properties below a place that are none of Esker's and look like one."""
    known = (*OF_TABLE, *OF_COLUMN, *OF_RULE)
    inside = document.at(path)
    if isinstance(inside, dict):
        for key in inside:
            if key != "customProperties":
                yield from misspelt(document, (*path, key))
        for index, each in enumerate(inside.get("customProperties") or ()):
            name = str(each.get("property"))
            guess = get_close_matches(name, known, n=1, cutoff=_LIKE)
            if each.get("vendor") in (None, "esker") and name not in known and guess:
                mark = document.mark((*path, "customProperties", index))
                place = f"line {mark.line}: " if mark else ""
                yield f'{place}custom property "{name}" is not known here; did you mean "{guess[0]}"?'
    elif isinstance(inside, list):
        for index in range(len(inside)):
            yield from misspelt(document, (*path, index))
