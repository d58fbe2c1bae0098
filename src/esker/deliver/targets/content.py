"""What others get to see of a message, as JSON."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

from esker.deliver.targets.target import Message

_HAS_ORJSON = find_spec("orjson") is not None
if _HAS_ORJSON:
    import orjson

    _STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_ENCODERS = {
    ascii_only: json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
    for ascii_only in (False, True)
}
"""Made once: `json.dumps` makes another one for each value."""


class NotJson(Exception):
    """A message holds what JSON does not have."""


def described(message: Message) -> dict[str, Any]:
    """Return which row changed, and how; without the row."""
    return {
        "id": message.id,
        "op": message.op,
        "version": message.version,
        "table": message.table,
        "changeset": message.changeset,
        "key": message.key,
    }


def whole(message: Message) -> dict[str, Any]:
    """Return a message with all that it says. Whoever is only notified gets no `body`."""
    found = described(message)
    if message.body is not None:
        found["body"] = message.body
    return found


def as_json(value: Any, *, ascii_only: bool = False) -> bytes:
    """Return a value as JSON on one line, the same bytes for the same value. Raises NotJson."""
    if _HAS_ORJSON and not ascii_only:
        try:
            found: bytes = orjson.dumps(value, None, _STRICT)
        except TypeError:
            pass  # numbers of more than 64 bits, or what JSON does not have: Python's own can tell
        else:
            # It writes null for numbers that are none, which are refused.
            if b"null" not in found:
                return found
    try:
        return _ENCODERS[ascii_only].encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"it cannot be written as JSON: {error}") from error
