"""Wait for servers: until something becomes true, or until a process has ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable


def wait_until(question: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Ask again and again until the answer is yes; raise TimeoutError when the deadline passes."""
    deadline = time.monotonic() + seconds
    while not question():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.1)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, wait for it, and kill it when it does not."""
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
