"""Wait for something to become true, and say what happened when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(question: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Ask again and again until the answer is yes; raise TimeoutError when the deadline passes."""
    deadline = time.monotonic() + seconds
    while not question():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.1)
