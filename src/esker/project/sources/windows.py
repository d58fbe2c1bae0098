"""Windows of time, as users declare them for sources that can be asked by time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from esker.project.declaration import Declaration, Duration, MistakeAt

_SECOND = timedelta(seconds=1)


def parse_moment(value: Any) -> Any:
    """Turn `2026-11-01` or `2026-11-01T12:00+01:00` into a moment; without a zone it is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f'"{value}" is no time; write 2026-11-01 or 2026-11-01T12:00:00Z') from None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise ValueError("write a time such as 2026-11-01 or 2026-11-01T12:00:00Z")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


Moment = Annotated[
    datetime,
    BeforeValidator(parse_moment),
    WithJsonSchema({"type": "string", "examples": ["2026-11-01", "2026-11-01T12:00:00Z"]}),
]


class WindowSettings(Declaration):
    """How a source is asked by time: in half-open windows, each until it is covered."""

    every: Duration = Field(description="Length of a window: `15m`. Windows are aligned to it, in UTC.")
    start: Moment | None = Field(
        None,
        description="Where the first window begins. Default: where the source says that its records begin, "
        "if it can be asked.",
    )
    lag: Duration = Field(
        timedelta(0),
        description="No window ends later than this long ago: records that become visible late are waited "
        "for.",
    )
    overlap: Duration = Field(
        timedelta(0),
        description="How much of the previous window is read once more (modes with a key only).",
    )
    split_at: int = Field(
        50_000, ge=1, description="A window with more records than this is halved, and halved again."
    )
    max_attempts: int = Field(
        5,
        ge=1,
        description="After so many runs in which a window could not be read and others could, it is no "
        "longer tried; `esker windows` shows it, `esker backfill` repairs it.",
    )
    max_windows: int = Field(
        100, ge=1, description="Most windows in one batch; more windows make more batches."
    )

    @model_validator(mode="after")
    def _whole_seconds(self) -> WindowSettings:
        if self.every % _SECOND or self.every < _SECOND:
            raise MistakeAt(("every",), "windows are whole seconds long: write 1s or more")
        if self.overlap % _SECOND:
            raise MistakeAt(("overlap",), "windows overlap by whole seconds: write 1s or more")
        if self.start is not None and self.start.microsecond:
            raise MistakeAt(("start",), "windows begin at whole seconds")
        return self
