"""Iceberg's objects for tables, kept for the next time.

A kept object asks the catalog only where the newest metadata lies, and reads it when it has moved on.
Loading a table anew builds everything from the start, each time.
"""

from __future__ import annotations

import threading
import time
from typing import Any

_AGE = 300.0
"""Seconds: catalogs hand out credentials with a table, and do not always say when these expire."""
_OF_LIFE = 0.5
"""This part of the life of such credentials, where it is known: what is done with a table takes time."""
_MOST = 64


class Handles(threading.local):
    """Kept objects of one thread: Iceberg's are not made to be shared."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}
        """Until when, and what."""

    def get(self, name: str) -> Any | None:
        """Return what is kept under a name, unless it is too old."""
        until, handle = self._kept.get(name, (0.0, None))
        return handle if time.monotonic() < until else None

    def keep(self, name: str, handle: Any, expires: float | None = None) -> None:
        """Keep an object under a name. `expires` is when its credentials do, in seconds since 1970."""
        age = _AGE if expires is None else min(_AGE, (expires - time.time()) * _OF_LIFE)
        self._kept.pop(name, None)
        while len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = time.monotonic() + age, handle

    def forget(self, name: str) -> None:
        """Keep it no longer."""
        self._kept.pop(name, None)
