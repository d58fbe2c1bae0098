"""Pointers of a Hive Metastore: parameters of its tables, changed under the lock that Iceberg takes."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
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

_PATIENCE = 60.0
"""Seconds to wait for the lock."""


class HivePointers(Pointers):
    """The parameter `metadata_location` of each table."""

    def read(self, table: str) -> Pointer | None:
        with self._connected() as client:
            found = self._find(client, table)
            return None if found is None else self._pointer(found)

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        location = following.write(pointer.files)
        namespace, _, name = table.rpartition(".")
        with self._connected() as client, self._locked(client, namespace, name):
            found = self._find(client, table)
            if found is None or self._pointer(found) != pointer:
                raise PointerMoved
            found.putToParameters(METADATA_LOCATION, location)
            found.putToParameters(PREVIOUS_LOCATION, pointer.location)
            # Metastores that compare parameters do so once more; others rely on the lock.
            expected = {
                "expected_parameter_key": METADATA_LOCATION,
                "expected_parameter_value": pointer.location,
            }
            iceberg(self._jvm, "hive.MetastoreUtil").alterTable(client, namespace, name, found, expected)
        return location

    def _pointer(self, found: Any) -> Pointer | None:
        parameters = found.getParameters()
        location = parameters.get(METADATA_LOCATION)
        if location is None:
            return None  # a table of Hive's own
        return Pointer(location, self.files, parameters.get(PREVIOUS_LOCATION))

    def _find(self, client: Any, table: str) -> Any | None:
        namespace, _, name = table.rpartition(".")
        try:
            return client.getTable(namespace, name)
        except JvmFailure as error:
            if causes(error)[0].kind == "NoSuchObjectException":
                return None
            raise

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        hive = self._jvm.org.apache.hadoop.hive
        client = None
        try:
            conf = hive.conf.HiveConf(
                self.engine.iceberg_catalog(self.catalog).getConf(), hive.conf.HiveConf._java_lang_class
            )
            client = hive.metastore.HiveMetaStoreClient(conf)
            yield client
        except JvmFailure as error:
            cause = causes(error)[-1]
            raise CatalogUnreachable(self.catalog, first_line(cause.message) or cause.kind) from error
        finally:
            if client is not None:
                with suppress(*JvmFailure):
                    client.close()

    @contextmanager
    def _locked(self, client: Any, namespace: str, name: str) -> Iterator[None]:
        api = self._jvm.org.apache.hadoop.hive.metastore.api
        part = api.LockComponent(api.LockType.EXCLUSIVE, api.LockLevel.TABLE, namespace)
        part.setTablename(name)
        request = api.LockRequest([part], getpass.getuser(), socket.gethostname())
        answer = client.lock(request)
        lock, until = answer.getLockid(), monotonic() + _PATIENCE
        try:
            while answer.getState().toString() == "WAITING":
                if monotonic() > until:
                    raise CatalogUnreachable(self.catalog, f"Somebody holds the lock of {namespace}.{name}.")
                sleep(0.1)
                answer = client.checkLock(lock)
            if answer.getState().toString() != "ACQUIRED":
                raise CatalogUnreachable(self.catalog, f"The lock of {namespace}.{name} was not granted.")
            yield
        finally:
            with suppress(*JvmFailure):
                client.unlock(lock)
