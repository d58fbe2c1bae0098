"""A table's Parquet file, open for reading: its footer, and the columns that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from esker.engine.iceberg.manifests import FileEntry
from esker.engine.store import Store, explained

_FORMAT = ds.ParquetFileFormat()


class DataFile(Protocol):
    """What can be asked of a file."""

    @property
    def metadata(self) -> pq.FileMetaData:
        """Its footer."""

    @property
    def schema_arrow(self) -> pa.Schema:
        """Its columns, with their field ids."""

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        """Return columns of row groups, in the order of the file."""

    def iter_batches(
        self, batch_size: int, row_groups: list[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of row groups in parts, in the order of the file."""


@contextmanager
def opened(store: Store, file: FileEntry) -> Iterator[DataFile]:
    """Open a file; raises FileNotFoundError or StoreUnreachable, also while it is read."""
    files, path = store.filesystem(file.path)
    with explained(file.path):
        if isinstance(files, fs.LocalFileSystem):
            yield _LocalFile(path, file.size)
            return
        try:
            yield _remote(store, (store.keys, store.further), file.path, file.size)
        except OSError as error:
            if not store.exists(file.path):
                raise FileNotFoundError(file.path) from error
            raise


@dataclass(frozen=True)
class _LocalFile:
    """A file on a disk, opened for each reading. Its footer is kept."""

    path: str
    size: int

    @property
    def metadata(self) -> pq.FileMetaData:
        return _footer(self.path, self.size)

    @property
    def schema_arrow(self) -> pa.Schema:
        return _columns(self.path, self.size)

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        with self._open() as file:
            return file.read_row_groups(groups, columns)

    def iter_batches(
        self, batch_size: int, row_groups: list[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            yield from file.iter_batches(batch_size, row_groups, columns)

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(self.path, metadata=self.metadata, pre_buffer=True)


@lru_cache(maxsize=2048)
def _footer(path: str, size: int) -> pq.FileMetaData:
    """Return a footer. Files of tables never change; one in its place would have another size."""
    return pq.read_metadata(path)


@lru_cache(maxsize=2048)
def _columns(path: str, size: int) -> pa.Schema:
    return _footer(path, size).schema.to_arrow_schema()


@dataclass(frozen=True)
class _RemoteFile:
    """A file in a store. Its size is known, so the store is not asked for it."""

    fragment: Any

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.fragment.metadata

    @property
    def schema_arrow(self) -> pa.Schema:
        return self.metadata.schema.to_arrow_schema()

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        return self.fragment.subset(row_group_ids=groups).to_table(columns=columns)

    def iter_batches(
        self, batch_size: int, row_groups: list[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        part = self.fragment.subset(row_group_ids=row_groups)
        yield from part.to_batches(columns=columns, batch_size=batch_size)


@lru_cache(maxsize=256)
def _remote(store: Store, keys: object, location: str, size: int) -> _RemoteFile:
    """Return a file that keeps its footer: files of tables never change."""
    files, path = store.filesystem(location)
    return _RemoteFile(_FORMAT.make_fragment(path, files, file_size=size))
