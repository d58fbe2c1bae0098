"""Read and write files of tables from this process, without Spark.

Only for what is small: the narrow columns of a lookup, the rows of a small batch. Where this process
cannot reach a table's store, `can_reach` says so, and Iceberg's own client reads and writes the files
(`iceberg/table_store.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from esker.engine.file_systems import azure_file_system, gcs_file_system, s3_file_system
from esker.engine.locations import is_local, path_of
from esker.errors import DiskFull, EskerError, StoreNotWritable, StoreUnreachable
from esker.project.secrets import redact

_S3 = ("s3", "s3a")
_AZURE = ("abfs", "abfss")
_GCS_HOST, _GCS_OPEN = "gcs.service.host", "gcs.no-auth"
_AZURE_KEY, _AZURE_NAME = "adls.auth.shared-key.account.key", "adls.auth.shared-key.account.name"
_AZURE_PLACE, _AZURE_SAS = "adls.connection-string.", "adls.sas-token."
_OTHER_WAYS = {
    "s3": (
        *("s3.remote-signing-enabled", "client.factory", "client.credentials-provider"),
        # Files that are written without these are refused, or lie there as nobody wanted them.
        *("s3.sse.type", "s3.acl", "s3.write.tags.", "s3.access-points."),
    ),
    "gs": ("gcs.oauth2.token", "gcs.impersonate.service-account", "gcs.encryption-key"),
    "abfss": ("adls.token", "adls.token-credential-provider", "adls.refresh-credentials-endpoint"),
}
"""Properties of Iceberg's by which it reaches stores in ways that this process does not know; those that
end with a dot are begun by them."""
_ABSENT = ("false", "none")
_CLIENTS = {
    "gs": "org.apache.iceberg.gcp.gcs.GCSFileIO",
    "abfss": "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
}
"""Iceberg's own clients: Hadoop's have properties of their own."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Store:
    """What holds the files of tables: local disks, and perhaps object stores.

    Stores are equal when they hold the same files, whatever keys they are opened with.
    """

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    keys: tuple[str | None, str | None, str | None] = field(
        default=(None, None, None), compare=False, repr=False
    )
    knows: frozenset[str] = frozenset()
    """Schemes of addresses that this process reaches as Iceberg does."""
    further: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """What Iceberg is told of stores other than S3."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Store:
        """Return the store that Iceberg's properties of a catalog or of a table's files describe."""
        return cls(
            endpoint=properties.get("s3.endpoint"),
            region=properties.get("client.region"),
            path_style=properties.get("s3.path-style-access", "false").lower() == "true",
            keys=(
                properties.get("s3.access-key-id"),
                properties.get("s3.secret-access-key"),
                properties.get("s3.session-token"),
            ),
            knows=frozenset(
                scheme
                for scheme, ways in _OTHER_WAYS.items()
                if _CLIENTS.get(scheme) in (None, properties.get("io-impl"))
                and not any(_is_told(properties, name) for name in ways)
            ),
            further=tuple(
                sorted(
                    (name, value) for name, value in properties.items() if name.startswith(("gcs.", "adls."))
                )
            ),
        )

    def can_reach(self, location: str) -> bool:
        """Tell whether files at a location can be read and written from this process."""
        scheme = urlsplit(location).scheme
        scheme = "s3" if scheme in _S3 else "abfss" if scheme in _AZURE else scheme
        return is_local(location) or scheme in self.knows

    def filesystem(self, location: str) -> tuple[fs.FileSystem, str]:
        """Return the file system of a location, and the path in it."""
        parts = urlsplit(location)
        if parts.scheme in _S3:
            return self._s3(), location.partition("://")[2]
        if parts.scheme == "gs":
            told = dict(self.further)
            is_open = told.get(_GCS_OPEN) == "true"
            return gcs_file_system(told.get(_GCS_HOST), anonymous=is_open), location.partition("://")[2]
        if parts.scheme in _AZURE:
            container, _, host = parts.netloc.partition("@")
            return self._azure(host), f"{container}/{location.partition(parts.netloc + '/')[2]}"
        if parts.scheme == "file":
            return fs.LocalFileSystem(), path_of(location)
        return fs.LocalFileSystem(), location

    def read_bytes(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a file's bytes, or a part of them. Raises FileNotFoundError."""
        files, path = self.filesystem(location)
        with explained(location), files.open_input_file(path) as stream:
            content: bytes = stream.read() if length is None else stream.read_at(length, offset)
            return content

    def write_bytes(self, location: str, content: Any) -> None:
        """Write a new file from anything that holds bytes."""
        files, path = self.filesystem(location)
        with explained(location):
            if isinstance(files, fs.LocalFileSystem):
                files.create_dir(path.rpartition("/")[0], recursive=True)
            with files.open_output_stream(path) as stream:
                stream.write(content)

    def exists(self, location: str) -> bool:
        """Tell whether a file is there."""
        return self.size(location) is not None

    def size(self, location: str) -> int | None:
        """Return how many bytes a file has; None when it is not there."""
        files, path = self.filesystem(location)
        with explained(location):
            found = files.get_file_info(path)
        return int(found.size) if found.type == fs.FileType.File else None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none when there is no such folder."""
        files, path = self.filesystem(folder)
        with explained(folder):
            found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(file.base_name for file in found if file.type == fs.FileType.File)

    def open_file(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Return a file to read parts of, or raise FileNotFoundError. Its size, if known, saves a request."""
        files, path = self.filesystem(location)
        with explained(location):
            return files.open_input_file(path)

    def delete(self, location: str) -> None:
        """Remove a file."""
        files, path = self.filesystem(location)
        with explained(location):
            files.delete_file(path)

    def try_listing(self, folder: str) -> None:
        """See whether a place can be listed. Raises StoreUnreachable."""
        files, path = self.filesystem(folder)
        with explained(folder):
            try:
                files.get_file_info(fs.FileSelector(path, allow_not_found="/" in path))
            except FileNotFoundError as error:
                raise StoreUnreachable(folder, "There is no such bucket.") from error

    def now(self) -> Store:
        """Return the store with keys that are valid now."""
        return self

    def with_keys(self, do: Callable[[Store], Any]) -> Any:
        """Do something with the store and keys that are valid now."""
        return do(self)

    def _s3(self) -> fs.FileSystem:
        return s3_file_system(self.endpoint, self.region, path_style=self.path_style, keys=self.keys)

    def _azure(self, host: str) -> fs.FileSystem:
        told = dict(self.further)
        account = host.partition(".")[0]
        key = told.get(_AZURE_KEY) if told.get(_AZURE_NAME) == account else None
        signature = told.get(_AZURE_SAS + host) or told.get(_AZURE_SAS + account)
        return azure_file_system(
            account, told.get(_AZURE_PLACE + host), account_key=key, sas_token=None if key else signature
        )


def _is_told(properties: Mapping[str, str], name: str) -> bool:
    if name.endswith("."):
        return any(key.startswith(name) for key in properties)
    return properties.get(name, "false").lower() not in _ABSENT


LOCAL = Store()
"""The disks of this machine."""


@contextmanager
def explained(location: str) -> Iterator[None]:
    """Raise what a store answers as one of Esker's errors; a file that is not there as FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        words = redact(str(error))
        if error.errno in _FULL:
            raise DiskFull(os.strerror(error.errno)) from error
        if error.errno in _DENIED:
            raise StoreNotWritable(location, words) from error
        raise StoreUnreachable(location, words) from error


def try_store(store: Store, location: str, *, writes: bool) -> None:
    """See whether a place in a store can be listed, and written to if that is allowed to anybody at all.

    Raises StoreUnreachable.
    """
    store.try_listing(location)
    if writes:
        probe = f"{location}/.esker-probe-{os.getpid()}"
        store.write_bytes(probe, b"esker doctor")
        # Some stores keep whatever was written: the probe is in nobody's way.
        with suppress(EskerError, FileNotFoundError):
            store.delete(probe)
