"""Find out the types of columns that come as text, in this process, for values that are here already.

The same answer as that of `inference`, or none: where only Spark's cast can tell, it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from esker.contracts.inference import PATTERNS
from esker.project.types import Column, Plain

# Without ASCII, Python takes the long s for one: "falſe".
_WRITTEN = {kind: re.compile(pattern, re.ASCII) for kind, pattern in PATTERNS}
_BIGINT = range(-(1 << 63), 1 << 63)
_PLAIN_TIME = re.compile(r"[^T ]+[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z?")
"""Spark takes a time without seconds too, but not with the sign of UTC behind it."""


class _InDoubt(Exception):
    """Whether a value has a type is for Spark to say."""


def infer_from(values: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[Column, ...] | None:
    """Return the named columns with the narrowest type that fits every value; None where Spark must tell.

    Columns without a value are left out. The empty text is a value, but tells no type.
    """
    columns = []
    try:
        for name in names:
            if found := values[name]:
                columns.append(Column(name, Plain(_narrowest({value for value in found if value}))))
    except _InDoubt:
        return None
    return tuple(columns)


def _narrowest(values: set[str]) -> str:
    fitting = (kind for kind, _ in PATTERNS if all(_has(value, kind) for value in values))
    return next(fitting, "string") if values else "string"


def _has(value: str, kind: str) -> bool:
    if not _WRITTEN[kind].match(value):
        return False
    match kind:
        case "bigint":
            return int(value) in _BIGINT
        case "date" | "timestamp":
            _check_moment(value, kind)
    return True


def _check_moment(value: str, kind: str) -> None:
    """Raise _InDoubt for what is no moment of Python's calendar, or written otherwise than plainly."""
    # Newer Pythons take 24:00 for the midnight that follows.
    if kind == "timestamp" and (not _PLAIN_TIME.fullmatch(value) or value[11:13] == "24"):
        raise _InDoubt
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise _InDoubt from None
