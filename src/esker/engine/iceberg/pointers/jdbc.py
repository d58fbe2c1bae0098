"""Pointers of Iceberg's JDBC catalog: a row for each table, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from esker.engine.failures import JvmFailure, causes, first_line
from esker.engine.iceberg.pointers.pointer import (
    METADATA_LOCATION,
    PREVIOUS_LOCATION,
    NextFile,
    Pointer,
    PointerMoved,
    Pointers,
)
from esker.errors import CatalogUnreachable

_DRIVERS = {"postgresql": "org.postgresql.Driver", "sqlite": "org.sqlite.JDBC"}
_ROW = "catalog_name = ? AND table_namespace = ? AND table_name = ?"
_READ = f"SELECT {METADATA_LOCATION}, {PREVIOUS_LOCATION} FROM iceberg_tables WHERE {_ROW}"
_SWAP = (
    f"UPDATE iceberg_tables SET {METADATA_LOCATION} = ?, {PREVIOUS_LOCATION} = ? "
    f"WHERE {_ROW} AND {METADATA_LOCATION} = ?"
)


class JdbcPointers(Pointers):
    """The rows of `iceberg_tables`."""

    def read(self, table: str) -> Pointer | None:
        with self._connected() as connection:
            found = _prepared(connection, _READ, *self._key(table)).executeQuery()
            if not found.next():
                return None
            return Pointer(found.getString(1), self.files, found.getString(2))

    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        location = following.write(pointer.files)
        # As Iceberg commits: the row is changed only while it says what was read.
        values = (location, pointer.location, *self._key(table), pointer.location)
        with self._connected() as connection:
            changed = _prepared(connection, _SWAP, *values).executeUpdate()
        if changed != 1:
            raise PointerMoved
        return location

    def _key(self, table: str) -> tuple[str, str, str]:
        namespace, _, name = table.rpartition(".")
        return self.catalog, namespace, name

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        settings = self._settings
        url = settings["uri"]
        properties = self._jvm.java.util.Properties()
        for key in ("user", "password"):
            if f"jdbc.{key}" in settings:
                properties.setProperty(key, settings[f"jdbc.{key}"])
        connection = None
        try:
            driver = self._jvm.java.lang.Class.forName(_DRIVERS[url.split(":")[1]])
            connection = driver.getDeclaredConstructor(None).newInstance(None).connect(url, properties)
            yield connection
        except JvmFailure as error:
            cause = causes(error)[-1]
            raise CatalogUnreachable(self.catalog, first_line(cause.message) or cause.kind) from error
        finally:
            if connection is not None:
                with suppress(*JvmFailure):
                    connection.close()


def _prepared(connection: Any, sql: str, *values: str) -> Any:
    statement = connection.prepareStatement(sql)
    for number, value in enumerate(values, 1):
        statement.setString(number, value)
    return statement
