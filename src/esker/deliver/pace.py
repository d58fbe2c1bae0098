"""How fast rows go to a target, at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa


def paced(
    batches: Iterable[pa.RecordBatch],
    rate: float,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts, so that no more than `rate` rows are done in a second.

    A part is as many rows as a second has, or one. The time that whoever takes it needs for it counts; what
    it needs more is not made up for later, as that would be faster than the rate.
    """
    most = max(1, int(rate))
    for batch in batches:
        for start in range(0, len(batch), most):
            part = batch.slice(start, most)
            begun = now()
            yield part
            wait(max(0.0, len(part) / rate - (now() - begun)))
