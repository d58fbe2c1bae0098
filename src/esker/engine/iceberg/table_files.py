"""The files of tables, whether or not a table can be loaded."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from esker.engine.iceberg.credentials import store_of_catalog
from esker.engine.session import Engine
from esker.engine.store import Store


@dataclass(frozen=True)
class TableFiles:
    """Reads, lists and writes files of tables. Raises StoreUnreachable for what a store refuses."""

    store: Store

    @classmethod
    def of_catalog(cls, engine: Engine, catalog: str) -> TableFiles:
        """Return the files of a catalog's tables, reached with what the project declares."""
        return cls(store_of_catalog(engine, catalog))

    def read(self, location: str) -> bytes:
        """Return a file's bytes, or raise FileNotFoundError."""
        return self.store.read_bytes(location)

    def open(self, location: str) -> pa.NativeFile:
        """Return a file to read parts of, or raise FileNotFoundError."""
        return self.store.open_file(location)

    def size(self, location: str) -> int | None:
        """Return how many bytes a file has; None when it is not there."""
        return self.store.size(location)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none when there is no such folder."""
        return self.store.names(folder)

    def write(self, location: str, content: bytes) -> None:
        """Write a new file."""
        self.store.write_bytes(location, content)
