"""Somebody who writes to a database all the while it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Writer:
    """What was done so far."""

    times: int = 0
    failures: list[Exception] = field(default_factory=list)


@contextmanager
def writing(write: Callable[[int], object]) -> Iterator[Writer]:
    """Call `write` with 1, 2, 3… in a thread of its own, again and again, until the end of the block."""
    writer, over = Writer(), threading.Event()

    def work() -> None:
        while not over.is_set():
            writer.times += 1
            try:
                write(writer.times)
            except Exception as error:
                writer.failures.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield writer
    finally:
        over.set()
        thread.join()


@contextmanager
def most_at_once(count: Callable[[], int]) -> Iterator[Callable[[], int]]:
    """Ask for a number all the while; what is returned tells the highest that was seen."""
    seen = [0]

    def look(_: int) -> None:
        seen[0] = max(seen[0], count())

    with writing(look) as watcher:
        yield lambda: seen[0]
    assert not watcher.failures, watcher.failures
