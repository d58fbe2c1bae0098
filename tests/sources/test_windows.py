"""Which windows of time there are, and which are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from esker.project.sources import WindowSettings
from esker.sources.windows import Coverage, Window, cut, due_windows
from tests.sources.oai_server import moment

QUARTERS = WindowSettings(every=timedelta(minutes=15))
windows = st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda pair: Window(pair[0], sum(pair)))


def due(settings: WindowSettings, now: str, *covered: tuple[str, str], start: str = "12:05") -> list[str]:
    coverage = Coverage.of(Window.between(moment(since), moment(until)) for since, until in covered)
    found = due_windows(settings, coverage, moment(start), moment(now))
    return [f"{window.since:%H:%M} {window.until:%H:%M}" for window in found]


def test_no_window_ends_in_the_future() -> None:
    """A start that fits no quarter, and a clock in the middle of one."""
    assert due(QUARTERS, "12:10") == []
    assert due(QUARTERS, "12:15") == ["12:05 12:15"]
    assert due(QUARTERS, "12:44:59") == ["12:05 12:15", "12:15 12:30"]


def test_no_window_ends_later_than_the_lag_allows() -> None:
    late = WindowSettings(every=timedelta(minutes=15), lag=timedelta(minutes=5))
    assert due(late, "12:34") == ["12:05 12:15"]
    assert due(late, "12:35") == ["12:05 12:15", "12:15 12:30"]


def test_gaps_come_first() -> None:
    found = due(QUARTERS, "14:00", ("12:05", "12:30"), ("12:45", "13:15"), ("13:22", "13:30"))
    assert found == ["12:30 12:45", "13:15 13:22", "13:30 13:45", "13:45 14:00"]


def test_a_year_is_one_interval() -> None:
    year = Window.between(datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    coverage = Coverage.of(reversed(list(cut(year, 900))))
    assert coverage.intervals == (year,)
    assert Coverage.from_json(coverage.as_json()) == coverage


@given(st.lists(windows), st.lists(windows))
def test_coverage_is_the_seconds_that_were_covered(first: list[Window], second: list[Window]) -> None:
    coverage = Coverage.of(first).with_windows(second)
    seconds = {second for window in (*first, *second) for second in range(window.start, window.end)}
    assert {s for window in coverage.intervals for s in range(window.start, window.end)} == seconds
    gaps = {s for window in coverage.gaps(0, 90) for s in range(window.start, window.end)}
    assert gaps == set(range(90)) - seconds
    for one, other in zip(coverage.intervals, coverage.intervals[1:], strict=False):
        assert one.end < other.start


@given(windows, st.integers(1, 7))
def test_halves(window: Window, granule: int) -> None:
    halves = window.halves(granule)
    if halves is None:
        assert not [at for at in range(window.start + 1, window.end) if at % granule == 0] or granule > 1
    else:
        assert (halves[0].start, halves[1].end) == (window.start, window.end)
        assert halves[0].end == halves[1].start
        assert halves[0].end % granule == 0
