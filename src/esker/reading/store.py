"""The files of a table by PyIceberg's clients, which know profiles, roles and keys from a catalog."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from esker.engine.locations import is_local
from esker.engine.store import Store


@dataclass(frozen=True)
class StoreOfTable(Store):
    """What holds a table's files."""

    files: FileIO | None = field(default=None, compare=False, repr=False)

    @classmethod
    def by(cls, files: FileIO) -> StoreOfTable:
        """Return the store that PyIceberg opened for a table."""
        return cls(endpoint=files.properties.get("s3.endpoint"), files=files)

    def filesystem(self, location: str) -> tuple[fs.FileSystem, str]:
        if is_local(location) or self.files is None:
            return super().filesystem(location)
        scheme, _, path = location.partition("://")
        if isinstance(self.files, PyArrowFileIO):
            return self.files.fs_by_scheme(scheme, path.partition("/")[0]), path
        # Azure's: PyIceberg prefers adlfs there, which knows `container@account`.
        return self._by_fsspec(scheme, location)

    def _by_fsspec(self, scheme: str, location: str) -> tuple[fs.FileSystem, str]:
        from pyiceberg.io.fsspec import FsspecFileIO  # noqa: PLC0415

        assert isinstance(self.files, FsspecFileIO)
        host = location.partition("@")[2].partition("/")[0] or None
        found = self.files.get_fs(scheme, host)
        return fs.PyFileSystem(fs.FSSpecHandler(found)), str(found._strip_protocol(location))
