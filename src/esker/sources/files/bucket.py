"""Files in an object store: S3, Google Cloud Storage or Azure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pyarrow import fs

from esker.errors import FileChangedWhileReading, FileGone, SourceNotFound, SourceUnavailable
from esker.ledger.file_versions import FileVersion
from esker.project.secrets import redact
from esker.sources.files.found import FoundFile
from esker.sources.files.patterns import fixed_part, is_hidden, is_pattern, matches, reaches_below
from esker.sources.files.place import FULL, Place

_MARKS = ("etag", "last-modified", "version-id", "versionid", "generation", "updated", "crc32c", "md5hash")
"""What stores say of a version, in their own words. Other facts change when an object is only read."""


class Bucket(Place):
    """Objects of a store whose names match a pattern.

    `pattern` is a path of the store's own, which begins with the bucket; `account` stands behind that in
    addresses (Azure).
    """

    is_on_disk = False

    def __init__(self, files: fs.FileSystem, pipeline: str, scheme: str, account: str, pattern: str) -> None:
        self._files, self.pipeline, self.scheme = files, pipeline, scheme
        self._account, self._pattern = account, pattern

    def list(self) -> list[FoundFile]:
        folder = fixed_part(self._pattern)
        with self._explained(folder):
            if is_pattern(self._pattern):
                below = reaches_below(self._pattern)
                found = self._files.get_file_info(
                    fs.FileSelector(folder, recursive=below, allow_not_found=True)
                )
            else:
                found = [self._files.get_file_info(self._pattern)]
            files = [
                self._found(info)
                for info in found
                if info.type == fs.FileType.File
                and matches(info.path, self._pattern)
                and not is_hidden(info.path[len(folder) :])
            ]
            # Folders are only parts of names there, and need not exist. The bucket must.
            bucket = self._pattern.partition("/")[0]
            if not files and self._files.get_file_info(bucket).type == fs.FileType.NotFound:
                raise SourceNotFound(self.pipeline, self._address(self._pattern), self._address(bucket))
        return sorted(files, key=lambda file: file.path)

    def now(self, file: FoundFile) -> FileVersion | None:
        with self._explained(file.location):
            info = self._files.get_file_info(str(file.location))
        return self._found(info).version if info.type == fs.FileType.File else None

    @contextmanager
    def opened(self, file: FoundFile) -> Iterator[IO[bytes]]:
        # Marks of the version are compared around the reading, which takes many requests.
        try:
            with self._explained(file.location), self._files.open_input_file(str(file.location)) as stream:
                before = _marks(stream)
                self.confirm(file)
                yield stream
            with self._explained(file.location), self._files.open_input_file(str(file.location)) as again:
                after = _marks(again)
        except FileNotFoundError:
            raise FileGone(self.pipeline, file.path) from None
        except SourceUnavailable:
            # What was cut while it was read breaks off.
            self.confirm(file)
            raise
        if after != before:
            raise FileChangedWhileReading(self.pipeline, file.path, str(file.version), "other content")
        self.confirm(file)

    def below_root(self, file: FoundFile) -> str:
        return file.path.partition("://")[2]

    def _found(self, info: fs.FileInfo) -> FoundFile:
        version = FileVersion(self._address(info.path), info.size or 0, info.mtime_ns or 0)
        return FoundFile(version, Path(info.path))

    def _address(self, path: str) -> str:
        bucket, slash, key = path.partition("/")
        return f"{self.scheme}://{bucket}{self._account}{slash}{key}"

    @contextmanager
    def _explained(self, path: str | Path) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in FULL:
                raise
            raise SourceUnavailable(self._address(str(path)), redact(str(error)), None) from error


def _marks(stream: Any) -> tuple[int, Any]:
    """Return what tells one version of an object from another."""
    about = {key.lower(): value for key, value in (stream.metadata() or {}).items()}
    return stream.size(), {key: about[key] for key in _MARKS if key in about}
