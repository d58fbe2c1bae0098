"""Copies of files on a disk, for what Spark cannot read where it is, or as it is written.

A copy is made of the very version that was listed, whole, or not at all. What happens to the file afterwards
is a matter of the next run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.errors import DiskFull, SourceMalformed, SourceUnreadable
from esker.ledger.file_versions import FileVersion
from esker.sources.files.found import FoundFile
from esker.sources.files.json_document import NoDocument, write_lines
from esker.sources.files.packing import is_left_to_spark, packing_of
from esker.sources.files.place import FULL, Place

_CHUNK = 8 << 20
_AT_ONCE = 8
_LONGEST_NAME = 240
_UNPACKED = ".unpacked"
"""Behind the name of what is no longer as it was written: Spark unpacks by the end of a name."""


class Copies:
    """The copies of one reader, in a folder of their own that goes with it."""

    def __init__(self, place: Place, file_format: str, folder: Path | None) -> None:
        self._place, self._format, self._folder = place, file_format, folder
        self._opened: TemporaryDirectory[str] | None = None
        self._made: dict[FileVersion, FoundFile] = {}

    def is_needed(self, file: FoundFile) -> bool:
        """Tell whether a file must be copied before Spark can read it."""
        return not self._place.is_on_disk or self._is_written_anew(file)

    def make(self, files: Sequence[FoundFile]) -> tuple[FoundFile, ...]:
        """Return files with copies in the place of those that need one.

        Raises FileGone, FileChangedWhileReading, SourceMalformed, SourceUnreadable or DiskFull.
        """
        wanted = [file for file in files if self.is_needed(file) and file.version not in self._made]
        if wanted:
            self._check_room(sum(file.version.size for file in wanted))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for file, copy in zip(wanted, pool.map(self._copied, wanted), strict=True):
                    self._made[file.version] = copy
        return tuple(self._made.get(file.version, file) for file in files)

    def origin(self, path: Expression) -> Expression:
        """Return the address of a file from that of its copy, as Spark writes it."""
        if self._opened is None:
            return path
        start = "file:///" if self._place.scheme == "file" else f"{self._place.scheme}://"
        # By the folder's own name, which is plain: those above it may be written in another way there.
        name = Path(self._root).name
        return F.regexp_replace(path, rf"^file:/(?:[^/]*/)*{name}/(.*?)(?:\{_UNPACKED})?$", f"{start}$1")

    def drop(self, files: Sequence[FoundFile]) -> None:
        """Remove the copies of files that have been loaded."""
        for file in files:
            if copy := self._made.pop(file.version, None):
                copy.location.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all copies."""
        self._made.clear()
        if self._opened is not None:
            self._opened.cleanup()
            self._opened = None

    @property
    def _root(self) -> str:
        if self._opened is None:
            self._opened = TemporaryDirectory(prefix="esker-files-", dir=self._folder)
        return self._opened.name

    def _is_written_anew(self, file: FoundFile) -> bool:
        return self._format == "json" or not is_left_to_spark(file.path)

    def _check_room(self, size: int) -> None:
        free = shutil.disk_usage(self._root).free
        if size > free:
            raise DiskFull(
                f"The files of a batch are {size} bytes, and {free} are free in {Path(self._root).parent}: "
                "set source: {max_bytes: …} lower."
            )

    def _copied(self, file: FoundFile) -> FoundFile:
        is_written_anew = self._is_written_anew(file)
        target = self._target(file, _UNPACKED if is_written_anew else "")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as copy, self._place.opened(file) as stream:
                if not is_written_anew:
                    shutil.copyfileobj(stream, copy, _CHUNK)
                else:
                    with self._unpacked(file, stream) as unpacked:
                        self._write(file, unpacked, copy)
        except OSError as error:
            if error.errno in FULL:
                raise DiskFull(os.strerror(error.errno)) from error
            raise SourceUnreadable(file.path, f"no copy can be made: {error}") from error
        return replace(file, location=target, copied=target.stat().st_size)

    def _write(self, file: FoundFile, stream: IO[bytes], copy: IO[bytes]) -> None:
        if self._format != "json":
            shutil.copyfileobj(stream, copy, _CHUNK)
            return
        try:
            write_lines(stream, copy)
        except NoDocument as error:
            # A file that is still being written is no document either: that is the better word for it.
            self._place.confirm(file)
            raise SourceMalformed(
                file.path, str(error), "Write one list of objects, or one object, and write the file anew."
            ) from error

    @contextmanager
    def _unpacked(self, file: FoundFile, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        packing = packing_of(file.path) if file.version.size else None
        if packing is None:
            yield stream
            return
        try:
            with pa.CompressedInputStream(stream, packing) as unpacked:
                yield unpacked
        except (OSError, pa.ArrowException) as error:
            if getattr(error, "errno", None) in FULL:
                raise
            self._place.confirm(file)
            raise SourceUnreadable(file.path, f"it cannot be unpacked: {error}") from error

    def _target(self, file: FoundFile, ending: str) -> Path:
        parts = self._place.below_root(file).split("/")
        if any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts):
            raise SourceUnreadable(file.path, "no file on a disk can have its name")
        return Path(self._root, *parts[:-1], parts[-1] + ending)
