"""Files as they were when they were loaded, beside files as they are now. Needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class FileVersion:
    """A file as it was when it was loaded: another size or time is another version."""

    path: str
    size: int
    modified: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.modified / 1e9, UTC)
        return f"{self.size} bytes of {moment:%Y-%m-%d %H:%M:%S.%f}"


@dataclass(frozen=True)
class Compared:
    """How files differ from those that have been loaded. What is in neither is as it was."""

    fresh: frozenset[str]
    """Paths that have never been loaded."""
    changed: Mapping[str, FileVersion]
    """By path, the version that was loaded last, where it is another now."""


def compare(known: Mapping[str, FileVersion], listed: Sequence[FileVersion]) -> Compared:
    """Compare files that are there with those that were loaded."""
    fresh = frozenset(file.path for file in listed if file.path not in known)
    changed = {f.path: known[f.path] for f in listed if f.path not in fresh and known[f.path] != f}
    return Compared(fresh, changed)
