"""Pointers of a Nessie: contents of a branch, changed by a commit that names the one that was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.pointers.pointer import NextFile, Pointer, PointerMoved, Pointers
from esker.errors import CatalogUnreachable

_COMMIT = "nessie.commit.id"
"""Where Iceberg's client finds the commit that its own is built on."""
_CONFLICTS = ("CommitFailedException", "NessieConflictException", "NessieReferenceConflictException")


class NessiePointers(Pointers):
    """The contents of the branch that the project names."""

    def read(self, table: str) -> Pointer | None:
        with self._explained():
            client = self._client()
            client.refresh()
            found = client.table(self._identifier(table))
            if found is None:
                return None
            head = str(client.getReference().getHash())
            return Pointer(found.getMetadataLocation(), self.files, token=(found.getId(), head))

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        location = following.write(pointer.files)
        content, commit = pointer.token
        with self._explained():
            client = self._client()
            text = following.content.decode()
            metadata = iceberg(self._jvm, "TableMetadataParser").fromJson(location, text)
            builder = iceberg(self._jvm, "TableMetadata").buildFrom(metadata)
            base = builder.setProperties({_COMMIT: commit}).build()
            key = self._jvm.org.projectnessie.model.ContentKey.of(table.split("."))
            try:
                client.commitTable(base, metadata, location, content, key)
            except JvmFailure as error:
                if any(cause.kind in _CONFLICTS for cause in causes(error)):
                    raise PointerMoved from error
                raise
        return location

    def _identifier(self, table: str) -> Any:
        return iceberg(self._jvm, "catalog.TableIdentifier").parse(table)

    def _client(self) -> Any:
        catalog = self.engine.iceberg_catalog(self.catalog)
        # Iceberg shows its client to nobody; another one would need every way in to be said again.
        field = catalog.getClass().getDeclaredField("client")
        field.setAccessible(True)
        return field.get(catalog)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except JvmFailure as error:
            cause = causes(error)[-1]
            raise CatalogUnreachable(self.catalog, first_line(cause.message) or cause.kind) from error
