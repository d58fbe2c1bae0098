"""The windows of a pipeline: what is covered, what is missing, what failed, what is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from esker.errors import NoWindows
from esker.ledger.attempts import MissingWindows, failed_windows, missing_windows
from esker.ledger.entry import read_entry
from esker.ledger.holds import find_hold
from esker.ledger.remembered import recall
from esker.ledger.state import State
from esker.project import Project
from esker.sources.windows import Coverage, Window, newest_end

WindowStatus = Literal["covered", "missing", "failed", "given up", "held"]


@dataclass(frozen=True)
class WindowLine:
    """A stretch of time, and how it stands."""

    since: datetime
    until: datetime
    status: WindowStatus
    attempts: int = 0
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.since.isoformat(),
            "to": self.until.isoformat(),
            "status": self.status,
            "attempts": self.attempts,
            "error": self.error,
        }


def missing_of(project: Project, state: State, name: str) -> MissingWindows | None:
    """Return the windows of a pipeline's source that are no longer tried; None where there is none."""
    pipeline = project.pipelines.get(name)
    settings = pipeline.source.windows if pipeline is not None else None
    if settings is None:
        return None
    return missing_windows(state, project.state_key, name, settings.max_attempts)


def list_windows(
    project: Project,
    state: State,
    name: str,
    properties: Callable[[str, str], Mapping[str, str] | None],
) -> list[WindowLine]:
    """Return how the time of a pipeline's source stands, oldest first. Raises NoWindows.

    `properties` returns those of a table, by its catalog and name; None where there is no table. The source
    is not asked: what is due by its clock alone is not told.
    """
    pipeline = project.pipeline(name)
    settings = pipeline.source.windows
    if settings is None:
        raise NoWindows(name, pipeline.source.type)
    stored = properties(project.catalog_name(pipeline.catalog), pipeline.table)
    entry = read_entry(stored, name) if stored is not None else None
    covered = Coverage.from_json(recall(state, project.state_key, name, entry))
    hold = find_hold(state, project.state_key, name)
    held = Coverage.from_json(hold.position) if hold is not None and hold.is_of(entry) else Coverage()
    latest = newest_end(settings, datetime.now(UTC))
    failed = failed_windows(state, project.state_key, name)
    starts = [int(settings.start.timestamp())] if settings.start is not None else []
    starts += [window.start for window in covered.intervals] + [each.start for each in failed]
    lines = [_line(window, "covered") for window in covered.intervals]
    for gap in covered.gaps(min(starts, default=latest), latest):
        inside = [each for each in failed if gap.start <= each.start and each.end <= gap.end]
        for each in inside:
            status: WindowStatus = "given up" if each.attempts >= settings.max_attempts else "failed"
            lines.append(_line(Window(each.start, each.end), status, each.attempts, each.error))
        rest = Coverage.of(Window(each.start, each.end) for each in inside)
        for part in rest.gaps(gap.start, gap.end):
            missing = Coverage.of(held.gaps(part.start, part.end))
            lines += [_line(window, "missing") for window in missing.intervals]
            lines += [_line(window, "held") for window in missing.gaps(part.start, part.end)]
    return sorted(lines, key=lambda line: line.since)


def _line(window: Window, status: WindowStatus, attempts: int = 0, error: str | None = None) -> WindowLine:
    return WindowLine(window.since, window.until, status, attempts, error)
