"""Rows go no faster than the rate, however large a batch is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from esker.deliver.pace import paced


class Clock:
    """A clock that goes on when somebody waits, or works."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.now += seconds


def batch(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(range(rows))})


@pytest.mark.parametrize(
    ("rate", "sizes", "work", "parts", "waits"),
    [
        (100, [250], 0.0, [100, 100, 50], [1.0, 1.0, 0.5]),
        (100, [120, 30], 0.25, [100, 20, 30], [0.75, 0.0, 0.05]),
        (2.5, [5], 0.0, [2, 2, 1], [0.8, 0.8, 0.4]),
        (0.25, [2], 1.0, [1, 1], [3.0, 3.0]),
        # Who is slower than the rate does not wait, and is not faster afterwards.
        (10, [20], 1.5, [10, 10], [0.0, 0.0]),
    ],
)
def test_rows_have_their_time(
    rate: float, sizes: list[int], work: float, parts: list[int], waits: list[float]
) -> None:
    """Never more than a second's rows at once, and what they take is waited for."""
    clock = Clock()
    seen = []
    for part in paced(map(batch, sizes), rate, lambda: clock.now, clock.wait):
        seen.append(len(part))
        clock.now += work
    assert seen == parts
    assert clock.waits == waits
    assert clock.now - 100 >= sum(sizes) / rate
