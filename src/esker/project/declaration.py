"""What every declaration shares: unknown keys are errors, and values never change afterwards."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Declaration(BaseModel):
    """Base of everything that stands in a project file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def parse_duration(value: Any) -> Any:
    """Turn `90s`, `15m` or `1h 30m` into a timedelta; leave other types to pydantic."""
    if not isinstance(value, str):
        if isinstance(value, int | float):
            raise ValueError("a duration needs a unit: 30s, 15m, 6h, 7d")
        return value
    if re.fullmatch(rf"\s*(?:{_DURATION.pattern}\s*)+", value) is None:
        raise ValueError(f'"{value}" is no duration; write 30s, 15m, 6h, 7d or 1h 30m')
    duration = timedelta(
        seconds=sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(value))
    )
    if duration <= timedelta(0):
        raise ValueError("a duration must be longer than nothing")
    return duration


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "examples": ["30s", "15m", "6h", "7d"]}),
]

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""A name that Esker gives to a thing: safe in SQL, file names and table properties."""

TableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$")]
"""A table with its namespace: `lakehouse.sales`."""
