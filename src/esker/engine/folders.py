"""Folders that tables and their catalog lie in."""

from __future__ import annotations

import os
from pathlib import Path

from esker.errors import StoreNotWritable


def make_writable(folder: Path) -> None:
    """Make a folder of a store, or raise StoreNotWritable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".esker-probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreNotWritable(str(folder), error.strerror or str(error)) from error
