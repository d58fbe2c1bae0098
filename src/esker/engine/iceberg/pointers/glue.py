"""Pointers of AWS Glue: parameters of its tables, which have versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.pointers.pointer import (
    METADATA_LOCATION,
    PREVIOUS_LOCATION,
    NextFile,
    Pointer,
    PointerMoved,
    Pointers,
)
from esker.errors import CatalogUnreachable

_KEPT = (
    "name",
    "description",
    "owner",
    "retention",
    "storageDescriptor",
    "partitionKeys",
    "viewOriginalText",
    "viewExpandedText",
    "tableType",
    "targetTable",
)
"""What an update must repeat of a table: Glue forgets the rest."""


class GluePointers(Pointers):
    """The parameter `metadata_location` of each table."""

    def read(self, table: str) -> Pointer | None:
        with self._explained():
            found = self._find(self._client(), table)
            if found is None:
                return None
            parameters = found.parameters()
            location = parameters.get(METADATA_LOCATION)
            if location is None:
                return None  # a table of another kind
            return Pointer(location, self.files, parameters.get(PREVIOUS_LOCATION))

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        location = following.write(pointer.files)
        model = self._jvm.software.amazon.awssdk.services.glue.model
        with self._explained():
            client = self._client()
            found = self._find(client, table)
            if found is None or found.parameters().get(METADATA_LOCATION) != pointer.location:
                raise PointerMoved
            changed = model.TableInput.builder()
            for name in _KEPT:
                getattr(changed, name)(getattr(found, name)())
            parameters = self._jvm.java.util.HashMap(found.parameters())
            parameters.put(METADATA_LOCATION, location)
            parameters.put(PREVIOUS_LOCATION, pointer.location)
            request = model.UpdateTableRequest.builder().databaseName(found.databaseName())
            request.catalogId(self._settings.get("glue.id"))
            request.versionId(found.versionId())
            request.tableInput(changed.parameters(parameters).build())
            try:
                client.updateTable(request.build())
            except JvmFailure as error:
                if causes(error)[0].kind == "ConcurrentModificationException":
                    raise PointerMoved from error
                raise
        return location

    def _client(self) -> Any:
        return getattr(iceberg(self._jvm, "aws.AwsClientFactories"), "from")(self._settings).glue()

    def _find(self, client: Any, table: str) -> Any | None:
        namespace, _, name = table.rpartition(".")
        model = self._jvm.software.amazon.awssdk.services.glue.model
        request = model.GetTableRequest.builder().databaseName(namespace).name(name)
        request.catalogId(self._settings.get("glue.id"))
        try:
            return client.getTable(request.build()).table()
        except JvmFailure as error:
            if causes(error)[0].kind == "EntityNotFoundException":
                return None
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except JvmFailure as error:
            cause = causes(error)[-1]
            raise CatalogUnreachable(self.catalog, first_line(cause.message) or cause.kind) from error
