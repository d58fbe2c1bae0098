"""The folder on this machine where Esker keeps what it can fetch again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache folder: `ESKER_CACHE`, or `esker` below the user's cache folder."""
    if chosen := os.environ.get("ESKER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "esker"
