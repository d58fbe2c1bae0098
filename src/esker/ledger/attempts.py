"""Windows of a source that could not be read: how often each was tried, and why it failed.

It is about work: losing it loses the count, and the next runs try again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from esker.ledger.state import State, moment_of, text_of, windows


@dataclass(frozen=True)
class FailedWindow:
    """A window that could not be read so far."""

    start: int
    end: int
    attempts: int
    error: str
    tried_at: datetime


def note_failure(state: State, project: str, pipeline: str, start: int, end: int, error: str) -> None:
    """Count one more run in which a window could not be read."""
    key = _key(project, pipeline) & (windows.c.start == start) & (windows.c.end == end)
    with state.begin() as connection:
        attempts = connection.execute(sa.select(windows.c.attempts).where(key)).scalar() or 0
        connection.execute(windows.delete().where(key))
        connection.execute(
            windows.insert().values(
                project=project,
                pipeline=pipeline,
                start=start,
                end=end,
                attempts=attempts + 1,
                error=error,
                tried_at=text_of(state.now()),
            )
        )


def forget_failures(state: State, project: str, pipeline: str, start: int, end: int) -> None:
    """Forget failures of a range that has been read, also of a longer one: its other parts count anew."""
    inside = (windows.c.start < end) & (windows.c.end > start)
    with state.begin() as connection:
        connection.execute(windows.delete().where(_key(project, pipeline) & inside))


def failed_windows(state: State, project: str, pipeline: str) -> list[FailedWindow]:
    """Return the windows of a pipeline that could not be read so far, oldest first."""
    query = sa.select(windows).where(_key(project, pipeline)).order_by(windows.c.start)
    with state.begin() as connection:
        rows = connection.execute(query).all()
    return [
        FailedWindow(row.start, row.end, row.attempts, row.error, moment_of(row.tried_at)) for row in rows
    ]


def _key(project: str, pipeline: str) -> sa.ColumnElement[bool]:
    return (windows.c.project == project) & (windows.c.pipeline == pipeline)
