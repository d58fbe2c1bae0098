"""What was met before, on the disk: memory stays flat, however much that is."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import mkstemp

from esker.errors import DiskFull

_DIGEST = 16


class Seen:
    """Texts that came by. One thread at a time may add to them."""

    def __init__(self, folder: Path | None = None) -> None:
        """They are kept below `folder`; by default where temporary files are."""
        handle, name = mkstemp(".sqlite", "esker-seen-", folder)
        os.close(handle)
        with _explained():
            self._kept = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
            # Nobody reads the file after a stop.
            self._kept.execute("PRAGMA journal_mode = OFF")
            self._kept.execute("PRAGMA synchronous = OFF")
            self._kept.execute("BEGIN")  # one for all: each by itself would be ten times slower
            self._kept.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        Path(name).unlink()  # open as it is, it goes with the connection, whoever forgets to close that

    def add(self, text: str) -> bool:
        """Take note of a text; tell whether it is new. Raises DiskFull."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
        with _explained():
            return self._kept.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1

    def close(self) -> None:
        self._kept.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        raise DiskFull("No space left for the parents that were met before.") from error
