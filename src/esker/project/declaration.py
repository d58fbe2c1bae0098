"""What every declaration shares: unknown keys are errors, and values never change afterwards."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from annotated_types import Interval
from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema

from esker.project.secrets import redact

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|[kKMGT]i?B)")
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


class Declaration(BaseModel):
    """Base of everything that stands in a project file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A secret may also be part of a plain text, such as a Spark setting.
    def __repr__(self) -> str:
        return redact(super().__repr__())

    def __str__(self) -> str:
        return redact(super().__str__())


class MistakeAt(ValueError):
    """A mistake at a key below the value that is being checked."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def parse_duration(value: Any) -> Any:
    """Turn `90s`, `15m` or `1h 30m` into a timedelta; leave other types to pydantic."""
    if not isinstance(value, str):
        if isinstance(value, int | float):
            raise ValueError("a duration needs a unit: 30s, 15m, 6h, 7d")
        return value
    if re.fullmatch(rf"\s*(?:{_DURATION.pattern}\s*)+", value) is None:
        raise ValueError(f'"{value}" is no duration; write 30s, 15m, 6h, 7d or 1h 30m')
    try:
        duration = timedelta(
            seconds=sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(value))
        )
    except OverflowError:
        raise ValueError(f'"{value}" is longer than can be counted') from None
    if duration <= timedelta(0):
        raise ValueError("a duration must be longer than nothing")
    return duration


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "examples": ["30s", "15m", "6h", "7d"]}),
]


def parse_size(value: Any) -> Any:
    """Turn `256MB` or `1GiB` into bytes; leave other types to pydantic."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise ValueError(f'"{value}" is no size; write 64MB, 256MiB or 1GB')
    return int(float(found[1]) * _BYTES[found[2].lower()])


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["64MB", "256MiB", "1GB"]}),
]


def parse_share(value: Any) -> Any:
    """Turn `10%` into 0.1; leave other types to pydantic."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
    if found is None:
        raise ValueError(f'"{value}" is no share; write 10% or 0.1')
    return float(found[1]) / 100


Share = Annotated[
    float,
    Interval(ge=0, le=1),
    BeforeValidator(parse_share),
    WithJsonSchema({"type": ["string", "number"], "examples": ["10%", 0.1]}),
]


def parse_switch(value: Any) -> Any:
    """Turn `on` and `off` into a truth value: YAML takes them for texts."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


Switch = Annotated[
    bool,
    BeforeValidator(parse_switch),
    WithJsonSchema({"enum": ["on", "off", True, False]}),
]

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""A name that Esker gives to a thing: safe in SQL, file names and table properties."""

TableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$")]
"""A table with its namespace: `lakehouse.sales`."""


def numbers_as_text(value: Any) -> Any:
    """Turn the numbers and truth values of a map into text: Spark and Iceberg know only text."""
    if not isinstance(value, dict):
        return value
    return {key: _as_text(inner) for key, inner in value.items()}


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Texts = Annotated[
    dict[str, str],
    BeforeValidator(numbers_as_text),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
"""Settings that are passed on as they are: text by key."""
