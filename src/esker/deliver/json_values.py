"""Values of rows as JSON has them, and rows' ids as text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_PLAIN, _TEXT = frozenset({type(None), bool, int, str}), frozenset({str})


def as_json_value(value: Any) -> Any:
    """Return a value as JSON has it, or raise TypeError.

    Decimals become texts, so that no digit is lost; bytes become base64, and numbers that are none null.
    """
    # Most values are plain, or dictionaries of them, and there are millions.
    if type(value) in _PLAIN:
        return value
    if type(value) is dict:
        return as_json_object(value)
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal() | UUID():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Mapping():
            return as_json_object(value)
        case list() | tuple() | set() | frozenset():
            return [as_json_value(inner) for inner in value]
    if hasattr(value, "item"):  # a number of numpy's
        return as_json_value(value.item())
    raise TypeError(f"{type(value).__name__} is no value that JSON has")


def as_json_object(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return values by name as JSON has them, or raise TypeError."""
    if _PLAIN.issuperset(map(type, values.values())) and _TEXT.issuperset(map(type, values)):
        return dict(values)  # of their own: whoever made them may make the next ones in the same place
    return {
        _name(name): inner if type(inner) in _PLAIN else as_json_value(inner)
        for name, inner in values.items()
    }


def _name(name: Any) -> str:
    return name if isinstance(name, str) else text_of(name)


def id_of(first: Any, *others: Any) -> str:
    """Return the id of a row with these values in the columns that identify it."""
    if not others:
        return first if type(first) is str else text_of(first)
    return json.dumps(
        [text_of(value) for value in (first, *others)], ensure_ascii=False, separators=(",", ":")
    )


def key_texts(id_: str, columns: int) -> list[str]:
    """Return the texts of which an id was made, or raise ValueError for what can be none."""
    if columns == 1:
        return [id_]
    try:
        texts = json.loads(id_)
    except ValueError:
        texts = None
    is_list = isinstance(texts, list) and len(texts) == columns
    if not is_list or not all(type(text) in (str, int) for text in texts):
        raise ValueError(f'"{id_}" is no JSON list of {columns} texts')
    return [str(text) for text in texts]


def how_ids_are_written(names: Sequence[str]) -> str:
    """Say how a person names rows."""
    if len(names) == 1:
        return f"Write values of column {names[0]}, as they stand in the table."
    example = ", ".join('"…"' for _ in names)
    return f"Ids are made of {', '.join(names)}: write each as a JSON list of texts, [{example}]."


def text_of(value: Any) -> str:
    """Return a value as Spark casts it to text, so that ids can be looked for in tables."""
    match value:
        case None:
            return "null"
        case str():
            return value
        case bool():
            return str(value).lower()
        case datetime():
            text = f"{value:%Y-%m-%d %H:%M:%S}"
            return text + f".{value.microsecond:06}".rstrip("0") if value.microsecond else text
        case bytes():
            return value.decode(errors="replace")
        case Decimal():
            return f"{value:f}"
    return str(value)
