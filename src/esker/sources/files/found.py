"""A file that was found, wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esker.ledger.file_versions import FileVersion


@dataclass(frozen=True)
class FoundFile:
    """A file as it was when it was listed."""

    version: FileVersion
    location: Path
    """Where it is read: itself, or a copy of it on a disk."""
    copied: int | None = None
    """The size of the copy, where it is one."""

    @property
    def path(self) -> str:
        """How the file is called in messages and in the record of loaded files."""
        return self.version.path

    @property
    def size(self) -> int:
        """The bytes that are read."""
        return self.version.size if self.copied is None else self.copied
