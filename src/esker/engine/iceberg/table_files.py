"""The files of tables, whether or not a table can be loaded.

This process reads them itself where it reaches their store as Iceberg does; elsewhere (HDFS, roles that are
assumed) Iceberg's own client does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.java import each, iceberg
from esker.engine.session import Engine
from esker.engine.store import Store, explained
from esker.errors import StoreUnreachable

_HADOOP = "org.apache.iceberg.hadoop.HadoopFileIO"
_ABSENT = ("NotFoundException", "FileNotFoundException", "NoSuchKeyException", "NoSuchFileException")


@dataclass(frozen=True)
class TableFiles:
    """Reads, lists and writes files of tables. Raises StoreUnreachable for what a store refuses."""

    store: Store
    _io: Any
    """Iceberg's client."""
    _jvm: Any

    @classmethod
    def of_catalog(cls, engine: Engine, catalog: str) -> TableFiles:
        """Return the files of a catalog's tables, reached with what the project declares."""
        settings = engine.bindings[catalog].settings
        context: Any = engine.spark.sparkContext
        io = iceberg(context._jvm, "CatalogUtil").loadFileIO(
            settings.get("io-impl", _HADOOP), dict(settings), context._jsc.hadoopConfiguration()
        )
        return cls(Store.of(settings), io, context._jvm)

    def read(self, location: str) -> bytes:
        """Return a file's bytes, or raise FileNotFoundError."""
        if self.store.can_reach(location):
            return self.store.read_bytes(location)
        try:
            stream = self._io.newInputFile(location).newStream()
            try:
                content: bytes = self._streams.toByteArray(stream)
                return content
            finally:
                stream.close()
        except JvmFailure as error:
            raise _failure(error, location) from error

    def open(self, location: str) -> pa.NativeFile:
        """Return a file to read parts of, or raise FileNotFoundError."""
        if not self.store.can_reach(location):
            return pa.BufferReader(self.read(location))
        files, path = self.store.filesystem(location)
        with explained(location):
            return files.open_input_file(path)

    def size(self, location: str) -> int | None:
        """Return how many bytes a file has; None when it is not there."""
        if self.store.can_reach(location):
            files, path = self.store.filesystem(location)
            with explained(location):
                found = files.get_file_info(path)
            return int(found.size) if found.type == fs.FileType.File else None
        try:
            file = self._io.newInputFile(location)
            return int(file.getLength()) if file.exists() else None
        except JvmFailure as error:
            raise _failure(error, location) from error

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none when there is no such folder."""
        if self.store.can_reach(folder):
            files, path = self.store.filesystem(folder)
            with explained(folder):
                found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
            return sorted(file.base_name for file in found if file.type == fs.FileType.File)
        try:
            listed = [str(file.location()) for file in each(self._io.listPrefix(f"{folder}/"))]
        except JvmFailure as error:
            if isinstance(failure := _failure(error, folder), FileNotFoundError):
                return []
            raise failure from error
        below = (location.rpartition(f"{folder.rpartition('/')[2]}/")[2] for location in listed)
        return sorted(name for name in below if "/" not in name)

    def write(self, location: str, content: bytes) -> None:
        """Write a new file."""
        if self.store.can_reach(location):
            self.store.write_bytes(location, content)
            return
        try:
            stream = self._io.newOutputFile(location).create()
            stream.write(content)
            stream.close()
        except JvmFailure as error:
            raise _failure(error, location) from error

    @property
    def _streams(self) -> Any:
        return iceberg(self._jvm, "relocated.com.google.common.io.ByteStreams")


def _failure(error: BaseException, location: str) -> Exception:
    chain = causes(error)
    if any(cause.kind in _ABSENT for cause in chain):
        return FileNotFoundError(location)
    return StoreUnreachable(location, first_line(chain[-1].message) or chain[-1].kind)
