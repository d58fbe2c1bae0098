"""Files that are read and written by Iceberg's own client, in Java.

It reaches what this process does not: HDFS, roles that are assumed, catalogs that sign each request. Bytes
cross between the processes by a temporary file, because Py4J writes them as text; few bytes go by Py4J.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from esker.engine.cleanup import cleaning_up
from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.access import Access
from esker.engine.iceberg.java import each, iceberg, java_class
from esker.errors import DiskFull, EskerError, StoreNotWritable, StoreUnreachable

_MOST = 64
"""So many clients are kept. Each has connections of its own."""
_BY_FILE = 64 * 2**10
"""More bytes than these cross by a temporary file."""
_ABSENT = ("NotFoundException", "FileNotFoundException", "NoSuchKeyException", "NoSuchFileException")
_DENIED = ("AccessControlException", "AccessDeniedException")
_FULL = ("DSQuotaExceededException", "NSQuotaExceededException")
_FOR_ARROW = ThreadPoolExecutor(16, thread_name_prefix="esker-client")
"""Arrow's threads forget what belongs to a thread of Python, and Py4J has a connection for each."""


class Client:
    """One of Iceberg's clients. Any thread may ask. Raises StoreUnreachable for what a store refuses."""

    def __init__(self, io: Any, jvm: Any) -> None:
        self._io, self._jvm = io, jvm

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes, or a part of them. Raises FileNotFoundError."""
        with _told(location):
            stream = self._io.newInputFile(location).newStream()
            with cleaning_up(stream.close):
                if offset:
                    stream.seek(offset)
                # Not by readFully: Py4J hands a byte[] over by value, so nobody can fill it.
                part = self._streams.limit(stream, length) if length is not None else stream
                if length is not None and length <= _BY_FILE:
                    content: bytes = self._streams.toByteArray(part)
                    return content
                with _scratch() as path:
                    target = java_class(self._jvm, "java.io.FileOutputStream")(str(path))
                    with cleaning_up(target.close):
                        self._streams.copy(part, target)
                    return path.read_bytes()

    def write(self, location: str, content: Any) -> None:
        """Write a file from anything that holds bytes."""
        view = memoryview(content)
        with _told(location):
            if len(view) <= _BY_FILE:
                target = self._io.newOutputFile(location).createOrOverwrite()
                target.write(bytes(view))
            else:
                with _scratch() as path:
                    path.write_bytes(view)
                    source = java_class(self._jvm, "java.io.FileInputStream")(str(path))
                    with cleaning_up(source.close):
                        target = self._io.newOutputFile(location).createOrOverwrite()
                        self._streams.copy(source, target)
            # Only now: to close what was half written would publish it in some stores.
            target.close()

    def size(self, location: str) -> int | None:
        """Return how many bytes a file has; None when it is not there."""
        with _told(location):
            file = self._io.newInputFile(location)
            return int(file.getLength()) if file.exists() else None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none when there is no such folder."""
        try:
            with _told(folder):
                listed = [str(file.location()) for file in each(self._io.listPrefix(f"{folder}/"))]
        except FileNotFoundError:
            return []
        below = (location.rpartition(f"{folder.rpartition('/')[2]}/")[2] for location in listed)
        return sorted(name for name in below if "/" not in name)

    def try_listing(self, folder: str) -> None:
        """See whether a place can be listed, whatever is there."""
        with suppress(FileNotFoundError), _told(folder):
            self._io.listPrefix(f"{folder}/").iterator().hasNext()

    def delete(self, location: str) -> None:
        """Remove a file."""
        with _told(location):
            self._io.deleteFile(location)

    def open(self, location: str, size: int | None = None) -> pa.PythonFile:
        """Return a file to read parts of, or raise FileNotFoundError."""
        if size is None:
            size = self.size(location)
            if size is None:
                raise FileNotFoundError(location)
        return pa.PythonFile(_Ranges(self, location, size), mode="r")

    @property
    def _streams(self) -> Any:
        return iceberg(self._jvm, "relocated.com.google.common.io.ByteStreams")


class Clients:
    """The clients of one project, made when they are first needed."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._made: OrderedDict[Any, Client] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, catalog: str, access: Access) -> Client:
        """Return the client that has an access to files of a catalog's tables."""
        name = (catalog, access.client, tuple(sorted(access.properties.items())))
        with self._lock:
            client = self._made.pop(name, None)
            if client is None:
                client = self._make(catalog, access)
            self._made[name] = client
            while len(self._made) > _MOST:
                self._made.popitem(last=False)  # Java closes it when nobody uses it any more
        return client

    def _make(self, catalog: str, access: Access) -> Client:
        jvm = self._spark.sparkContext._jvm
        with _told(f"catalog {catalog}"):
            conf = iceberg(jvm, "spark.SparkUtil").hadoopConfCatalogOverrides(
                self._spark._jsparkSession, catalog
            )
            io = iceberg(jvm, "CatalogUtil").loadFileIO(access.client, dict(access.properties), conf)
        return Client(io, jvm)


class _Ranges:
    """A file as Arrow reads files of Python: by position."""

    closed = False

    def __init__(self, client: Client, location: str, size: int) -> None:
        self._client, self._location, self._size = client, location, size
        self._at = 0

    def read(self, count: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        count = left if count is None or count < 0 else min(count, left)
        if not count:
            return b""
        content = _FOR_ARROW.submit(self._client.read, self._location, self._at, count).result()
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield an empty file that nobody else may read, and remove it."""
    handle, name = tempfile.mkstemp(prefix="esker-")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _told(location: str) -> Iterator[None]:
    """Raise what Java says of a store as one of Esker's errors; a missing file as FileNotFoundError."""
    try:
        yield
    except JvmFailure as error:
        raise _failure(error, location) from error


def _failure(error: BaseException, location: str) -> Exception:
    chain = causes(error)
    words = first_line(chain[-1].message) or chain[-1].kind
    known: tuple[tuple[tuple[str, ...], Callable[[], EskerError]], ...] = (
        (_DENIED, lambda: StoreNotWritable(location, words)),
        (_FULL, lambda: DiskFull(words)),
    )
    if any(cause.kind in _ABSENT for cause in chain):
        return FileNotFoundError(location)
    for kinds, build in known:
        if any(cause.kind in kinds for cause in chain):
            return build()
    return StoreUnreachable(location, words)
