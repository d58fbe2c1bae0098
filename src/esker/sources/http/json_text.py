"""Find values in a text of JSON, and return them as they stand there.

A number that goes through a Python value comes back as another text: 1.50 as 1.5, 1e400 not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from esker.sources.web import Malformed

MISSING: Final = object()
"""There is no such value; null is one."""

_SPACE = re.compile(r"[ \t\n\r]*")
_BREAKS = re.compile(r"[\n\r]")
_SHOWN = 100


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_number)
"""Numbers become the text that they are."""


def keys(path: str) -> tuple[str, ...]:
    """Return the names of a dotted path; `$` is the whole."""
    return tuple(name for name in path.removeprefix("$").split(".") if name)


def parsed(text: str) -> Any:
    """Return the value of a text, numbers as text. Raises Malformed."""
    if not text.strip():
        raise Malformed("The answer is empty.")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"The answer is no JSON ({error}): {text[:_SHOWN]}") from error


def value_at(value: Any, path: str) -> Any:
    """Return what stands at a path of a parsed value; MISSING when nothing does."""
    for name in keys(path):
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def raw_at(text: str, path: str) -> str | None:
    """Return the text at a path of a text that can be parsed; None when nothing stands there."""
    start = _start(text, path)
    return None if start is None else _line(text, start, _end(text, start))


def elements(text: str, path: str) -> Iterator[str]:
    """Yield the elements of the list at a path, each as one line."""
    start = _start(text, path)
    if start is None or text[start] != "[":
        return  # one name twice: the first of them is no list
    at = _skip(text, start + 1)
    while text[at] != "]":
        end = _end(text, at)
        yield _line(text, at, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def with_fields(record: str, fields: dict[str, str]) -> str:
    """Return an object with further fields in front; what is no object stays as it is."""
    if not fields or not record.startswith("{"):
        return record
    added = ", ".join(f"{json.dumps(name)}: {raw}" for name, raw in fields.items())
    rest = record[1:].lstrip()
    return f"{{{added}{'' if rest.startswith('}') else ', '}{rest}"


def _start(text: str, path: str) -> int | None:
    at = _skip(text, 0)
    for name in keys(path):
        found = _member(text, at, name)
        if found is None:
            return None
        at = found
    return at


def _member(text: str, at: int, wanted: str) -> int | None:
    """Return where the value of a name begins in the object that begins at a place."""
    if text[at] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # beyond the colon
        if name == wanted:
            return at
        at = _skip(text, _end(text, at))
        if text[at] == ",":
            at = _skip(text, at + 1)
    return None


def _end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _line(text: str, start: int, end: int) -> str:
    """Return a part of a text on one line: in JSON, line breaks stand between values only."""
    return _BREAKS.sub(" ", text[start:end])
