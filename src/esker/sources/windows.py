"""Windows of time: which there are, which are covered, which are due.

A window is half open and counted in whole seconds since 1970. What has been read is kept as merged
intervals, so a year of 15-minute windows is one interval, and what lies between intervals is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from esker.project.sources.windows import WindowSettings


@dataclass(frozen=True, order=True)
class Window:
    """A half-open range of time."""

    start: int
    end: int

    @classmethod
    def between(cls, since: datetime, until: datetime) -> Window:
        return cls(int(since.timestamp()), int(until.timestamp()))

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def until(self) -> datetime:
        return datetime.fromtimestamp(self.end, UTC)

    @property
    def seconds(self) -> int:
        return self.end - self.start

    def halves(self, granule: int = 1) -> tuple[Window, Window] | None:
        """Return both halves, cut at a multiple of the granule; None when it cannot be cut."""
        middle = (self.start + self.end) // 2 // granule * granule
        if not self.start < middle < self.end:
            return None
        return Window(self.start, middle), Window(middle, self.end)

    def __str__(self) -> str:
        same_day = self.since.date() == self.until.date()
        return (
            f"{_shown(self.since)} to {self.until:%H:%M:%S}"
            if same_day
            else (f"{_shown(self.since)} to {_shown(self.until)}")
        )


@dataclass(frozen=True)
class Coverage:
    """What has been read: intervals that neither touch nor overlap, oldest first."""

    intervals: tuple[Window, ...] = ()

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Coverage:
        merged: list[Window] = []
        for window in sorted(windows):
            if merged and window.start <= merged[-1].end:
                merged[-1] = Window(merged[-1].start, max(merged[-1].end, window.end))
            elif window.start < window.end:
                merged.append(window)
        return cls(tuple(merged))

    @classmethod
    def from_json(cls, position: Mapping[str, Any] | None) -> Coverage:
        return cls.of(Window(*pair) for pair in (position or {}).get("covered", ()))

    def as_json(self) -> dict[str, Any]:
        return {"covered": [[window.start, window.end] for window in self.intervals]}

    def with_windows(self, windows: Iterable[Window]) -> Coverage:
        return Coverage.of([*self.intervals, *windows])

    def gaps(self, start: int, end: int) -> Iterator[Window]:
        """Yield what is missing between two moments, oldest first."""
        at = start
        for interval in self.intervals:
            if interval.start >= end:
                break
            if at < interval.start:
                yield Window(at, interval.start)
            at = max(at, interval.end)
        if at < end:
            yield Window(at, end)

    def covers(self, window: Window) -> bool:
        return not any(self.gaps(window.start, window.end))


def due_windows(
    settings: WindowSettings, coverage: Coverage, start: datetime, now: datetime
) -> Iterator[Window]:
    """Yield the windows that are due and not covered, oldest first.

    None ends later than now less the lag. Between gaps they are cut at multiples of their length.
    """
    for gap in coverage.gaps(int(start.timestamp()), newest_end(settings, now)):
        yield from cut(gap, seconds_of(settings))


def newest_end(settings: WindowSettings, now: datetime) -> int:
    """Return where the newest window ends that is due."""
    every = seconds_of(settings)
    return int((now - settings.lag).timestamp()) // every * every


def seconds_of(settings: WindowSettings) -> int:
    """Return how long a window is."""
    return int(settings.every.total_seconds())


def cut(span: Window, every: int) -> Iterator[Window]:
    """Cut a span at multiples of a length."""
    at = span.start
    while at < span.end:
        end = min((at // every + 1) * every, span.end)
        yield Window(at, end)
        at = end


def told(windows: Sequence[Window]) -> str:
    """Return windows in words, for people."""
    if len(windows) == 1:
        return f"window {windows[0]}"
    return f"{len(windows)} windows, {_shown(windows[0].since)} to {_shown(windows[-1].until)}"


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
