"""A table's files, wherever they are: this process opens what it reaches, Iceberg's client the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import fs

from esker.engine.iceberg.access import Access, CurrentAccess
from esker.engine.iceberg.client import Client, Clients
from esker.engine.store import Store
from esker.errors import StoreNotWritable, StoreUnreachable

_T = TypeVar("_T")


@dataclass(frozen=True)
class TableStore(Store):
    """The store that a table's files are in. Keys that the catalog hands out are renewed in time."""

    catalog: str = ""
    current: CurrentAccess | None = field(default=None, compare=False, repr=False)
    clients: Clients | None = field(default=None, compare=False, repr=False)

    @classmethod
    def by(cls, clients: Clients, catalog: str, access: CurrentAccess) -> TableStore:
        """Return the store that an access opens."""
        first = access.get().store
        return cls(
            endpoint=first.endpoint,
            region=first.region,
            path_style=first.path_style,
            knows=first.knows,
            catalog=catalog,
            current=access,
            clients=clients,
        )

    def now(self) -> Store:
        return self._access.store

    def with_keys(self, do: Callable[[Store], Any]) -> Any:
        """Do something, and once again with other keys if the store refused those that the catalog gave."""
        return self._retried(lambda access: do(access.store))

    def filesystem(self, location: str) -> tuple[fs.FileSystem, str]:
        return self.now().filesystem(location)

    def read_bytes(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._do(
            location,
            lambda store: store.read_bytes(location, offset, length),
            lambda client: client.read(location, offset, length),
        )

    def write_bytes(self, location: str, content: Any) -> None:
        self._do(
            location,
            lambda store: store.write_bytes(location, content),
            lambda client: client.write(location, content),
        )

    def size(self, location: str) -> int | None:
        return self._do(location, lambda store: store.size(location), lambda client: client.size(location))

    def names(self, folder: str) -> list[str]:
        return self._do(folder, lambda store: store.names(folder), lambda client: client.names(folder))

    def open_file(self, location: str, size: int | None = None) -> pa.NativeFile:
        return self._do(
            location,
            lambda store: store.open_file(location, size),
            lambda client: client.open(location, size),
        )

    def try_listing(self, folder: str) -> None:
        self._do(folder, lambda store: store.try_listing(folder), lambda client: client.try_listing(folder))

    def delete(self, location: str) -> None:
        self._do(location, lambda store: store.delete(location), lambda client: client.delete(location))

    def _do(self, location: str, here: Callable[[Store], _T], there: Callable[[Client], _T]) -> _T:
        """Do something in this process if it reaches the location, or else by Iceberg's client."""
        if self._access.store.can_reach(location):
            return self._retried(lambda access: here(access.store))
        return self._retried(lambda access: there(self._clients.of(self.catalog, access)))

    def _retried(self, do: Callable[[Access], _T]) -> _T:
        access = self._access
        try:
            return do(access)
        except FileNotFoundError:
            raise
        except (OSError, StoreUnreachable, StoreNotWritable):
            assert self.current is not None
            other = self.current.after_refusal(access)
            if other is None:
                raise
            return do(other)

    @property
    def _access(self) -> Access:
        assert self.current is not None
        return self.current.get()

    @property
    def _clients(self) -> Clients:
        assert self.clients is not None
        return self.clients
