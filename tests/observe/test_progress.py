"""Pace and remaining time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.events import Progressed
from esker.observe.progress import Meter, Pace


def meter_after(seconds: float) -> Meter:
    """Return a meter whose clock moves once, between its start and its first reading."""
    ticks: Iterator[float] = iter((100.0, 100.0 + seconds))
    return Meter(lambda: next(ticks))


def test_half_the_bytes_in_ten_seconds_leave_ten() -> None:
    """The rest is expected to go as fast as what is done."""
    pace = meter_after(10).pace(Progressed("sales", rows=5_000, bytes=50, total_bytes=100))
    assert pace == Pace(rows=5_000, rows_per_second=500.0, done=0.5, seconds_left=10.0)
    assert str(pace) == "5,000 rows, 500 rows/s, 10 s left"


@pytest.mark.parametrize(("done", "total"), [(0, 100), (0, 0), (5, 0)])
def test_without_a_measure_nothing_is_promised(done: int, total: int) -> None:
    """Nothing read yet, or nothing known of the whole: no remaining time is shown."""
    pace = meter_after(10).pace(Progressed("sales", rows=7, bytes=done, total_bytes=total))
    assert (pace.done, pace.seconds_left) == (0.0, None)
    assert str(pace) == "7 rows, 1 rows/s"


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 10**6))
def test_a_pace_is_always_sensible(rows: int, done: int, total: int, seconds: float) -> None:
    """Whatever Spark reports, also more bytes than there are: 0 to 100 %, and no negative time."""
    pace = meter_after(seconds).pace(Progressed("sales", rows, done, total))
    assert 0.0 <= pace.done <= 1.0
    assert pace.rows_per_second >= 0
    assert pace.seconds_left is None or pace.seconds_left >= 0
