"""The metadata of a project's tables, read in this process without Java.

Of the embedded catalog, and of catalogs of folders on a disk, Esker reads it by itself: PyIceberg alone would
take longer to load than all the rest. Other catalogs are asked with PyIceberg. `Undecided` is raised where
only Java can tell: nothing was decided then, and the caller asks Spark.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from esker.engine.catalogs import bind
from esker.engine.iceberg.document import Document, Undecided, read_document
from esker.engine.iceberg.metadata_names import newest_numbered
from esker.engine.iceberg.table_id import TableId
from esker.engine.locations import is_local, path_of
from esker.errors import EskerError, TableNotFound
from esker.project import Project
from esker.project.catalogs import HadoopCatalog, SqliteCatalog

if TYPE_CHECKING:
    from esker.engine.iceberg.table_metadata import Table
    from esker.engine.store import Store

_PACKED = b"\x1f\x8b"
_PATIENCE = 30
"""Seconds that a database may be locked: as long as Java waits for it."""
_ROW = (
    "SELECT metadata_location FROM iceberg_tables "
    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
)


class Documents:
    """The tables of a project, each read when it is asked for."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def find(self, table: TableId) -> Document | None:
        """Return a table as it is now; None when the catalog has none of that name. Raises Undecided."""
        declared = self.project.catalogs()[table.catalog]
        if isinstance(declared, SqliteCatalog):
            location = _in_database(self.project.path(declared.path), table)
            return None if location is None else self._read(table, location)
        if isinstance(declared, HadoopCatalog) and is_local(self.project.warehouse_of(declared)):
            location = _in_folders(self.project.warehouse_of(declared), table)
            return None if location is None else self._read(table, location)
        return self._by_pyiceberg(table)

    def table(self, table: TableId) -> Table | None:
        """Return a table as a value; None when the catalog has none of that name. Raises Undecided."""
        found = self.find(table)
        return found.table if found is not None else None

    def _read(self, table: TableId, location: str) -> Document:
        try:
            if is_local(location):
                content = Path(path_of(location)).read_bytes()
            else:
                content = self._store_of(table.catalog, location).read_bytes(location)
            text = (gzip.decompress(content) if content.startswith(_PACKED) else content).decode()
        except (EskerError, OSError, EOFError, ValueError, zlib.error) as error:
            raise Undecided(f"{location}: {error}") from error
        # Its files may lie elsewhere, with keys of their own.
        found = read_document(
            table, location, text, lambda: self._store_of(table.catalog, found.table.location)
        )
        return found

    def _store_of(self, catalog: str, location: str) -> Store:
        from esker.engine.store import LOCAL, Store  # noqa: PLC0415 (Arrow)

        if is_local(location):
            return LOCAL
        store = Store.of(bind(self.project.catalogs()[catalog], self.project).settings)
        if not store.can_reach(location):
            raise Undecided(f"{location} is reached with Java only")
        return store

    def _by_pyiceberg(self, table: TableId) -> Document | None:
        try:
            from esker.reading.lake import Lake  # noqa: PLC0415 (PyIceberg)
        except ModuleNotFoundError as error:
            raise Undecided("PyIceberg is not installed") from error
        try:
            found = Lake(self.project).table(table.catalog, table.name)
        except TableNotFound:
            return None
        except EskerError as error:
            raise Undecided(error.message) from error
        # Its own way to write JSON refuses version 3.
        text = json.dumps(found.metadata.model_dump(mode="json"))
        return read_document(table, "", text, lambda: found.store)


def _in_database(database: Path, table: TableId) -> str | None:
    """Return where the embedded catalog says that a table's metadata lies."""
    if not database.exists():
        return None
    namespace, _, name = table.name.rpartition(".")
    try:
        # Only to look: a database that is not there is not made.
        with closing(
            sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
        ) as connection:
            row = connection.execute(_ROW, (table.catalog, namespace, name)).fetchone()
    except sqlite3.Error as error:
        raise Undecided(str(error)) from error
    return None if row is None else str(row[0])


def _in_folders(warehouse: str, table: TableId) -> str | None:
    """Return where the newest metadata of a table in a catalog of folders lies."""
    folder = Path(warehouse.removeprefix("file:")) / table.name.replace(".", "/") / "metadata"
    if not folder.is_dir():
        return None
    hint = folder / "version-hint.text"
    newest = newest_numbered(
        (each.name for each in folder.iterdir()), hint.read_text() if hint.exists() else None
    )
    return None if newest is None else str(folder / newest)
