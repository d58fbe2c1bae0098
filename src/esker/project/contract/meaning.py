"""What a value that stands in a contract is in a column of some type, as far as that is sure without Spark.

Spark casts more than Python reads: `2024-1-5` is a date for it, and `yes` is true.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from decimal import DecimalException
from typing import Any

from esker.project.types import Decimal, Plain, Type

_OWN = {
    "string": ("string",),
    "integer": ("int", "bigint"),
    "number": ("int", "bigint", "float", "double"),
    "boolean": ("boolean",),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "time": ("string",),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"(\d{4,7})-(\d{1,2})-(\d{1,2})([ T].*)?")
_LIKE_A_DATE = re.compile(
    r"[+-]?\d{4,7}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?|epoch|now|today|tomorrow|yesterday",
    re.IGNORECASE,
)
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def is_own(logical: str | None, kind: Type | None) -> bool:
    """Tell whether a column has a type that its logical type stands for, not one that somebody chose."""
    match kind:
        case Plain(name):
            return name in _OWN.get(str(logical), ())
        case Decimal():
            return logical in ("integer", "number")
    return False


def is_whole(kind: Type | None) -> bool:
    """Tell whether a column holds whole numbers only."""
    match kind:
        case Plain("int" | "bigint") | Decimal(scale=0):
            return True
    return False


def is_text(kind: Type | None) -> bool:
    """Tell whether a column holds texts."""
    return isinstance(kind, Plain) and kind.name == "string"


def meaning(value: Any, kind: Type | None) -> Hashable | None:
    """Return a value as one that can be compared with others in a column of a type; None if unsure."""
    match kind:
        case Decimal() | Plain("int" | "bigint" | "float" | "double"):
            return _number(value)
        case Plain("date"):
            return _date(value)
        case Plain("timestamp" | "timestamp_ntz"):
            return _moment(value)
        case Plain("boolean"):
            return _BOOLEANS.get(str(value).strip().lower())
        case Plain("string") if isinstance(value, str):
            # A text that is compared with a number counts as one.
            number = _number(value)
            return value if number is None else number
        case Plain("string"):
            return _number(value)
    return None


def can_be(value: Any, kind: Type | None) -> bool:
    """Tell whether a column of a type might hold a value. What surely fails is told, nothing else."""
    text = str(value).strip()
    match kind:
        case Decimal() | Plain("int" | "bigint" | "float" | "double"):
            number = _number(value)
            if number is not None and is_whole(kind):
                return number == number.to_integral_value()
            return not isinstance(value, bool) and _NUMBER.fullmatch(text) is not None
        case Plain("date"):
            return not isinstance(value, bool) and _LIKE_A_DATE.fullmatch(text) is not None
        case Plain("boolean"):
            return text.lower() in _BOOLEANS
    return True


def _number(value: Any) -> Number | None:
    try:
        found = None if isinstance(value, bool) else Number(str(value).strip())
    except DecimalException:
        return None
    return found if found is not None and found.is_finite() else None


def _date(value: Any) -> date | None:
    if (found := _DATE.fullmatch(str(value).strip())) is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def _moment(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
