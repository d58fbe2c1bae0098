"""How fast a load is, and how long it will take: from the events of the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from esker.events import Progressed


@dataclass(frozen=True)
class Pace:
    """Rows so far, rows a second, the part that is done, and the seconds that are left."""

    rows: int
    rows_per_second: float
    done: float
    seconds_left: float | None

    def __str__(self) -> str:
        left = f", {self.seconds_left:.0f} s left" if self.seconds_left is not None else ""
        return f"{self.rows:,} rows, {self.rows_per_second:,.0f} rows/s{left}"


class Meter:
    """Measures the pace of one load."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()

    def pace(self, event: Progressed) -> Pace:
        """Return the pace at an event."""
        seconds = max(self._clock() - self._started, 1e-9)
        done = min(1.0, event.bytes / event.total_bytes) if event.total_bytes else 0.0
        left = seconds * (1 - done) / done if done > 0 else None
        return Pace(event.rows, event.rows / seconds, done, left)
