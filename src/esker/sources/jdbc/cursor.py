"""Values of a cursor: texts as the database writes them, and the same a while before."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(.*)")
_DAY = timedelta(days=1)
_WHOLE = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_DIGITS = 400
"""Enough for the longest number that a double can be, with its fraction."""


def earlier(value: str, lag: timedelta | int) -> str:
    """Return a value so far before another, written alike. Raises ValueError where it is of another kind."""
    if isinstance(lag, int):
        return str(int(value) - lag) if _WHOLE.fullmatch(value) else _less(value, lag)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return str(date.fromisoformat(value) - _DAY * -(-lag // _DAY))
    found = _TIME.fullmatch(value)
    if found is None:
        raise ValueError(value)
    day, between, clock, fraction, zone = found.groups()
    micros = timedelta(microseconds=int((fraction or "0").ljust(6, "0")[:6]))
    moment = datetime.fromisoformat(f"{day} {clock}") + micros - lag
    digits = len(fraction) if fraction else (6 if moment.microsecond else 0)
    shown = f".{moment.microsecond:06}".ljust(digits + 1, "0")[: digits + 1] if digits else ""
    return f"{moment:%Y-%m-%d}{between}{moment:%H:%M:%S}{shown}{zone}"


def _less(value: str, lag: int) -> str:
    if _NUMBER.fullmatch(value) is None:
        raise ValueError(value)
    with localcontext(prec=_DIGITS):
        return f"{Decimal(value) - lag:f}"


def moment_of(value: str) -> datetime | None:
    """Return a value as a moment, where it is one; without a zone it is UTC."""
    if re.match(r"\d{4}-\d\d-\d\d", value) is None:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
