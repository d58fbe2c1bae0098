"""Pointers of servers that speak Iceberg's REST protocol: known only from a table that they hand out."""

from __future__ import annotations

from typing import Any

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.credentials import store_of
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.pointers.pointer import NextFile, NotServed, Pointer, Pointers
from esker.engine.iceberg.table_files import TableFiles
from esker.errors import CatalogUnreachable, RepairRefused

_UNREACHABLE = (
    "RESTException",
    "NotAuthorizedException",
    "ForbiddenException",
    "ServiceUnavailableException",
)
"""Nothing follows from these for the table. A server that cannot read the metadata file fails with others."""


class RestPointers(Pointers):
    """What the server answers with. It keeps the metadata itself, or reads the file for each answer."""

    def read(self, table: str) -> Pointer | None:
        catalog: Any = self.engine.iceberg_catalog(self.catalog)
        try:
            found = catalog.loadTable(iceberg(self._jvm, "catalog.TableIdentifier").parse(table))
        except JvmFailure as error:
            cause = causes(error)[0]
            if cause.kind in ("NoSuchTableException", "NoSuchNamespaceException"):
                return None
            if cause.kind in _UNREACHABLE:
                raise CatalogUnreachable(self.catalog, first_line(cause.message) or cause.kind) from error
            raise NotServed(first_line(cause.message) or cause.kind) from error
        metadata = found.operations().current()
        store = store_of(self.engine, self.catalog, table, found, metadata.location())
        return Pointer(
            location=metadata.metadataFileLocation(),
            files=TableFiles(store),
            served=iceberg(self._jvm, "TableMetadataParser").toJson(metadata),
        )

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        raise RepairRefused(
            table,
            "The protocol of REST catalogs has no way to point a table to another metadata file, and compare "
            "with the one that it has.",
            "Ask who runs the server to restore the table, or to drop it without its files and register "
            f"{following.folder} with the newest good file there.",
        )
