"""Windows of a source that could not be read: how often each was tried, and why it failed.

No two of them overlap: what is tried in halves is cut there, and each part keeps its count. It is about
work: losing it loses the count, and the next runs try again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

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
    """Count one more run in which a window could not be read.

    A window may have been tried before as a part of a longer one, or in parts: that counts, too.
    """
    now = state.now()
    with state.begin() as connection:
        before = _cut_out(connection, project, pipeline, start, end)
        attempts = 1 + max((each.attempts for each in before), default=0)
        _insert(connection, project, pipeline, FailedWindow(start, end, attempts, error, now))


def forget_failures(state: State, project: str, pipeline: str, start: int, end: int) -> None:
    """Forget failures of a range that has been read. What else a longer window had in it stays one."""
    with state.begin() as connection:
        _cut_out(connection, project, pipeline, start, end)


def _cut_out(
    connection: sa.Connection, project: str, pipeline: str, start: int, end: int
) -> list[FailedWindow]:
    """Take a range out of the windows that have failed, and return those that it touches as they were."""
    touching = _key(project, pipeline) & (windows.c.start < end) & (windows.c.end > start)
    found = [_failed(row) for row in connection.execute(sa.select(windows).where(touching)).all()]
    connection.execute(windows.delete().where(touching))
    for each in found:
        for rest in (replace(each, end=start), replace(each, start=end)):
            if rest.start < rest.end:
                _insert(connection, project, pipeline, rest)
    return found


def _insert(connection: sa.Connection, project: str, pipeline: str, window: FailedWindow) -> None:
    connection.execute(
        windows.insert().values(
            project=project,
            pipeline=pipeline,
            start=window.start,
            end=window.end,
            attempts=window.attempts,
            error=window.error,
            tried_at=text_of(window.tried_at),
        )
    )


def failed_windows(state: State, project: str, pipeline: str) -> list[FailedWindow]:
    """Return the windows of a pipeline that could not be read so far, oldest first."""
    query = sa.select(windows).where(_key(project, pipeline)).order_by(windows.c.start)
    with state.begin() as connection:
        rows = connection.execute(query).all()
    return [_failed(row) for row in rows]


@dataclass(frozen=True)
class MissingWindows:
    """Windows that are no longer tried: their rows are missing until a backfill brings them."""

    windows: int
    """How many there are."""
    start: datetime
    """Where the first one begins."""
    end: datetime
    """Where the last one ends."""
    since: datetime
    """When the first one of them was tried last."""

    def as_json(self) -> dict[str, Any]:
        return {
            "windows": self.windows,
            "from": self.start.isoformat(),
            "to": self.end.isoformat(),
            "since": self.since.isoformat(timespec="seconds"),
        }

    def told(self, pipeline: str) -> str:
        """Return it in words, with the command that repairs it."""
        number = "1 window is" if self.windows == 1 else f"{self.windows} windows are"
        return (
            f"{number} missing since {self.since:%Y-%m-%d %H:%M} UTC and no longer tried; esker backfill "
            f"{pipeline} --from {self.start:%FT%T} --to {self.end:%FT%T}"
        )


def missing_windows(state: State, project: str, pipeline: str, max_attempts: int) -> MissingWindows | None:
    """Return what is no longer tried after so many runs; None where nothing is missing that way."""
    found = [each for each in failed_windows(state, project, pipeline) if each.attempts >= max_attempts]
    if not found:
        return None
    return MissingWindows(
        windows=len(found),
        start=datetime.fromtimestamp(found[0].start, UTC),
        end=datetime.fromtimestamp(found[-1].end, UTC),
        since=min(each.tried_at for each in found),
    )


def _failed(row: Any) -> FailedWindow:
    return FailedWindow(row.start, row.end, row.attempts, row.error, moment_of(row.tried_at))


def _key(project: str, pipeline: str) -> sa.ColumnElement[bool]:
    return (windows.c.project == project) & (windows.c.pipeline == pipeline)
