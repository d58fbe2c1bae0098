"""A project's catalogs and tables, opened with PyIceberg."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, NotInstalledError
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from esker.engine.iceberg.metadata_names import newest_numbered
from esker.errors import (
    CatalogUnreachable,
    EskerError,
    NotWithoutSpark,
    NotWrittenWithoutSpark,
    ReaderNotInstalled,
    TableNotFound,
    UnknownPoint,
)
from esker.project import Project
from esker.project.catalogs import HadoopCatalog, SqliteCatalog
from esker.project.secrets import redact
from esker.project.warehouses import scheme_of
from esker.reading.settings import (
    BY_JAVA,
    CHOOSE_LOCATIONS,
    WRITTEN_VERSION,
    Unsuited,
    as_value,
    settings_of,
)
from esker.reading.store import StoreOfTable

_Answer = TypeVar("_Answer")
_EXTRAS = {"sqlite": "sql-sqlite", "jdbc": "sql-postgres", "glue": "glue", "hive": "hive", "s3tables": "glue"}
"""What PyIceberg needs beside itself, by the type of a catalog."""


@dataclass(frozen=True)
class OpenTable:
    """A table as it was when it was opened."""

    catalog: str
    name: str
    metadata: TableMetadata
    store: StoreOfTable

    @property
    def properties(self) -> dict[str, str]:
        return self.metadata.properties

    @property
    def current(self) -> Snapshot | None:
        """The newest snapshot."""
        return self.metadata.current_snapshot()

    def snapshot(self, number: int) -> Snapshot | None:
        """Return one of its snapshots; None when it is expired, or another table's."""
        return self._snapshots.get(number)

    @cached_property
    def _snapshots(self) -> dict[int, Snapshot]:
        """Its snapshots by id. PyIceberg looks through all of them for each one."""
        return {each.snapshot_id: each for each in self.metadata.snapshots}

    def lineage(self) -> list[Snapshot]:
        """Return the newest snapshot and those before it, oldest first, as far as they are not expired."""
        found: list[Snapshot] = []
        current = self.current
        while current is not None:
            found.append(current)
            parent = current.parent_snapshot_id
            current = self.snapshot(parent) if parent is not None else None
        return found[::-1]

    def comes_from(self, snapshot: Snapshot) -> bool:
        """Tell whether the newest snapshot comes from another one, as far as anything can still tell."""
        line = self.lineage()
        if any(each.snapshot_id == snapshot.snapshot_id for each in line):
            return True
        is_cut = bool(line) and line[0].parent_snapshot_id is not None
        return is_cut and (snapshot.sequence_number or 0) < (line[0].sequence_number or 0)

    def schema_at(self, snapshot: Snapshot | None) -> Schema:
        """Return the columns of a snapshot: of its time, or of today for the newest one."""
        if snapshot is None or snapshot == self.current or snapshot.schema_id is None:
            return self.metadata.schema()
        return self.metadata.schema_by_id(snapshot.schema_id) or self.metadata.schema()


def told(snapshot: Snapshot, key: str) -> str | None:
    """Return what a snapshot's summary says of a key."""
    return snapshot.summary.get(key) if snapshot.summary is not None else None


def changeset_of(snapshot: Snapshot) -> int | None:
    """Return the changeset that a snapshot is; None for one that is none."""
    number = told(snapshot, "esker.changeset")
    return int(number) if number is not None else None


def moment_of(snapshot: Snapshot) -> datetime | None:
    """Return the moment that the rows of a snapshot's changes bear, as far as it says so."""
    moment = told(snapshot, "esker.moment")
    return datetime.fromisoformat(moment) if moment is not None else None


class Lake:
    """The catalogs of a project. Each is opened when one of its tables is asked for."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._catalogs: dict[str, Catalog] = {}
        self._last: dict[tuple[str, str], OpenTable] = {}
        """Tables as they were opened last."""

    def table(self, catalog: str, name: str) -> OpenTable:
        """Open a table as it is now. Raises TableNotFound, NotWithoutSpark and CatalogUnreachable."""
        found = self._last[catalog, name] = self._table(catalog, name)
        return found

    def _table(self, catalog: str, name: str) -> OpenTable:
        declared = self.project.catalogs()[catalog]
        if scheme_of(declared.warehouse) in BY_JAVA:
            raise NotWithoutSpark(f'catalog "{catalog}"', "HDFS is reached with Java only")
        if isinstance(declared, HadoopCatalog):
            return self._in_folder(catalog, name, Path(self.project.warehouse_of(declared)))
        if isinstance(declared, SqliteCatalog) and not self.project.path(declared.path).exists():
            raise TableNotFound(name)  # to look into the database would make one
        found = self._asked(catalog, lambda: self._open(catalog).load_table(name), name)
        return _opened(catalog, name, found.metadata, found.io)

    def pinned(self, catalog: str, name: str, snapshot: int) -> OpenTable:
        """Open a table that has a certain snapshot, or raise UnknownPoint: it is expired."""
        kept = self._last.get((catalog, name))
        if kept is None or kept.snapshot(snapshot) is None:
            kept = self.table(catalog, name)
        if kept.snapshot(snapshot) is None:
            raise UnknownPoint(str(snapshot), "the table has no such snapshot, or it is expired")
        return kept

    def writable(self, catalog: str, name: str) -> PyIcebergTable:
        """Return PyIceberg's own table as it is now, to commit to it.

        Raises TableNotFound, CatalogUnreachable and NotWrittenWithoutSpark.
        """
        declared = self.project.catalogs()[catalog]
        if isinstance(declared, HadoopCatalog) or scheme_of(declared.warehouse) in BY_JAVA:
            raise NotWrittenWithoutSpark(name, f"PyIceberg has no catalog of type {declared.type}")
        if isinstance(declared, SqliteCatalog) and not self.project.path(declared.path).exists():
            raise TableNotFound(name)
        found = self._asked(catalog, lambda: self._open(catalog).load_table(name), name)
        if found.metadata.format_version > WRITTEN_VERSION and not self.chooses_locations(catalog):
            version = found.metadata.format_version
            raise NotWrittenWithoutSpark(name, f"PyIceberg writes no metadata of format version {version}")
        return found

    def chooses_locations(self, catalog: str) -> bool:
        """Tell whether a server writes the metadata of tables, and says where they go."""
        return self.project.catalogs()[catalog].type in CHOOSE_LOCATIONS

    def catalog(self, name: str) -> Catalog:
        """Return PyIceberg's own catalog. Raises NotWithoutSpark."""
        return self._open(name)

    def _open(self, catalog: str) -> Catalog:
        if catalog not in self._catalogs:
            try:
                settings = settings_of(self.project, self.project.catalogs()[catalog])
            except Unsuited as error:
                raise NotWithoutSpark(f'catalog "{catalog}"', str(error)) from None
            values = {name: as_value(setting) for name, setting in settings.items()}
            self._catalogs[catalog] = load_catalog(catalog, **values)  # type: ignore[arg-type]
        return self._catalogs[catalog]

    def _in_folder(self, catalog: str, name: str, warehouse: Path) -> OpenTable:
        folder = Path(str(warehouse).removeprefix("file:")) / name.replace(".", "/") / "metadata"
        if not folder.is_dir():
            raise TableNotFound(name)
        hint = folder / "version-hint.text"
        newest = newest_numbered(
            (each.name for each in folder.iterdir()), hint.read_text() if hint.exists() else None
        )
        if newest is None:
            raise TableNotFound(name)
        found = self._asked(catalog, lambda: StaticTable.from_metadata(str(folder / newest)), name)
        return _opened(catalog, name, found.metadata, found.io)

    def _asked(self, catalog: str, ask: Callable[[], _Answer], table: str) -> _Answer:
        try:
            return ask()
        except (NoSuchTableError, NoSuchNamespaceError):
            raise TableNotFound(table) from None
        except (NotInstalledError, ModuleNotFoundError) as error:
            missing = getattr(error, "name", None) or str(error)
            kind = self.project.catalogs()[catalog].type
            raise ReaderNotInstalled(missing, f"pyiceberg[{_EXTRAS.get(kind, 'pyarrow')}]") from error
        except EskerError:
            raise
        except Exception as error:
            # Each catalog's client has errors of its own, without a common root.
            raise CatalogUnreachable(catalog, redact(str(error).partition("\n")[0])) from error


def _opened(catalog: str, name: str, metadata: TableMetadata, files: FileIO) -> OpenTable:
    return OpenTable(catalog, name, metadata, StoreOfTable.by(files))
