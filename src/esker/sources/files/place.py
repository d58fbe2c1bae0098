"""Where files lie: a disk, or a store. Each place lists its files and opens them."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import IO

from esker.errors import FileChangedWhileReading, FileGone
from esker.ledger.file_versions import FileVersion
from esker.sources.files.found import FoundFile

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a disk says that has no room: no fault of the file that is read."""


class Place(ABC):
    """The files of one pattern."""

    pipeline: str
    scheme: str
    """How addresses of its files begin."""
    is_on_disk: bool
    """Spark reads its files where they are."""

    @abstractmethod
    def list(self) -> list[FoundFile]:
        """Return the files that match, ordered by path. Raises SourceNotFound."""

    @abstractmethod
    def now(self, file: FoundFile) -> FileVersion | None:
        """Return what a file is now; None for one that is gone."""

    @abstractmethod
    def opened(self, file: FoundFile) -> AbstractContextManager[IO[bytes]]:
        """Open a file, as it is packed. Raises FileGone or FileChangedWhileReading, also at the end: what
        was read then counts only if nothing is raised."""

    @abstractmethod
    def below_root(self, file: FoundFile) -> str:
        """Return the file's address without what all addresses here begin with."""

    def confirm(self, file: FoundFile) -> None:
        """Raise FileGone or FileChangedWhileReading for a file that is not what it was when listed."""
        now = self.now(file)
        if now is None:
            raise FileGone(self.pipeline, file.path)
        if now != file.version:
            raise FileChangedWhileReading(self.pipeline, file.path, str(file.version), str(now))
