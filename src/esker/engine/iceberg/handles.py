"""Iceberg's objects for tables, kept for the next time.

A kept object asks the catalog only where the newest metadata lies, and reads it when it has moved on.
Loading a table anew builds everything from the start, each time.
"""

from __future__ import annotations

import threading
import time
from typing import Any

_AGE = 300.0
"""Seconds: catalogs hand out credentials with a table, and these run out."""
_MOST = 64


class Handles(threading.local):
    """Kept objects of one thread: Iceberg's are not made to be shared."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}

    def get(self, name: str) -> Any | None:
        """Return what is kept under a name, unless it is too old."""
        since, handle = self._kept.get(name, (0.0, None))
        return handle if time.monotonic() - since < _AGE else None

    def keep(self, name: str, handle: Any) -> None:
        """Keep an object under a name."""
        self._kept.pop(name, None)
        while len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = time.monotonic(), handle

    def forget(self, name: str) -> None:
        """Keep it no longer."""
        self._kept.pop(name, None)
