"""A table's Parquet file, open for reading: its footer, and the columns that are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from esker.engine.iceberg.manifests import FileEntry
from esker.engine.store import Store, explained


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
    if not store.can_reach(file.path):
        yield _StreamedFile(store, file.path, file.size)
        return
    files, path = store.filesystem(file.path)
    with explained(file.path):
        if isinstance(files, fs.LocalFileSystem):
            yield _LocalFile(path, file.size)
            return
        try:
            yield _RemoteFile(store, file.path, file.size)
        except OSError as error:
            if not store.exists(file.path):
                raise FileNotFoundError(file.path) from error
            raise


class _OpenedFile(ABC):
    """A file that is opened for each reading."""

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        with self._open() as file:
            return file.read_row_groups(groups, columns)

    def iter_batches(
        self, batch_size: int, row_groups: list[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            yield from file.iter_batches(batch_size, row_groups, columns)

    @abstractmethod
    def _open(self) -> pq.ParquetFile: ...


@dataclass(frozen=True)
class _LocalFile(_OpenedFile):
    """A file on a disk, opened for each reading. Its footer is kept."""

    path: str
    size: int

    @property
    def metadata(self) -> pq.FileMetaData:
        return _footer(self.path, self.size)

    @property
    def schema_arrow(self) -> pa.Schema:
        return _columns(self.path, self.size)

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
class _StreamedFile(_OpenedFile):
    """A file that Iceberg's client reads. Its footer is kept."""

    store: Store
    path: str
    size: int

    @property
    def metadata(self) -> pq.FileMetaData:
        return _streamed_footer(self.store, self.path, self.size)

    @property
    def schema_arrow(self) -> pa.Schema:
        return self.metadata.schema.to_arrow_schema()

    def _open(self) -> pq.ParquetFile:
        # Columns that lie side by side are one request then.
        source = self.store.open_file(self.path, self.size)
        return pq.ParquetFile(source, metadata=self.metadata, pre_buffer=True)


@lru_cache(maxsize=2048)
def _streamed_footer(store: Store, path: str, size: int) -> pq.FileMetaData:
    with store.open_file(path, size) as stream:
        return pq.read_metadata(stream)


@dataclass(frozen=True)
class _RemoteFile:
    """A file in a store. Its size is known, so the store is not asked for it."""

    store: Store
    path: str
    size: int

    @property
    def metadata(self) -> pq.FileMetaData:
        return self._read(lambda fragment: fragment.metadata)

    @property
    def schema_arrow(self) -> pa.Schema:
        return self.metadata.schema.to_arrow_schema()

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        return self._read(lambda fragment: fragment.subset(row_group_ids=groups).to_table(columns=columns))

    def iter_batches(
        self, batch_size: int, row_groups: list[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        _ = self.metadata  # with keys that the store takes
        part = self._fragment(self.store.now()).subset(row_group_ids=row_groups)
        yield from part.to_batches(columns=columns, batch_size=batch_size)

    def _read(self, read: Callable[[Any], Any]) -> Any:
        return self.store.with_keys(lambda store: read(self._fragment(store)))

    def _fragment(self, store: Store) -> Any:
        return _fragment(store, (store.keys, store.further), self.path, self.size)


@lru_cache(maxsize=256)
def _fragment(store: Store, keys: object, location: str, size: int) -> Any:
    """Return a file that keeps its footer: files of tables never change."""
    return _format().make_fragment(*reversed(store.filesystem(location)), file_size=size)


@lru_cache
def _format() -> Any:
    import pyarrow.dataset as ds  # noqa: PLC0415 (brings pandas along, where that is installed: half a second)

    return ds.ParquetFileFormat()
