"""Databases by JDBC: a connection of the driver's for questions, and frames that Spark reads.

Rows go through Spark's reader. The driver's own connection asks for little: columns, keys, bounds. In
PostgreSQL it also holds a snapshot, under which all readers see the same rows, without any lock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import sleep
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from esker.engine.cleanup import cleaning_up
from esker.engine.failures import JvmFailure, explain, first_line
from esker.engine.session import Engine
from esker.errors import EskerError, SourceRefused, SourceUnavailable
from esker.project.secrets import redact
from esker.project.sources import JdbcSource

_TRIES = 4
_FIRST_PAUSE = 0.25
_CONNECT_SECONDS = 10
_READ_ONLY = "1"
_PASSING = ("08", "53", "57P")
"""How the states begin that may be others a moment later: no connection, no room, going down or coming up."""
_NO_NULLS = 0
_DECIMALS = ("decimal", "numeric")
_DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlite": "org.sqlite.JDBC",
}


@dataclass(frozen=True)
class Address:
    """Where a database is, and how it is entered."""

    kind: str
    url: str
    shown: str
    """For people."""
    properties: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, source: JdbcSource, path: str) -> Address:
        """Return a source's address; `path` is where the file of an embedded database lies."""
        properties = {}
        if source.user is not None:
            properties["user"] = source.user
        if source.password is not None:
            properties["password"] = source.password.get_secret_value()
        seconds = math.ceil(source.timeout.total_seconds())
        # To get in is an answer, too: who has little patience does not wait longer for that.
        entering = min(_CONNECT_SECONDS, seconds)
        if source.kind == "postgresql":
            properties |= {
                "ApplicationName": "esker",
                "connectTimeout": str(entering),
                "loginTimeout": str(entering),
                "socketTimeout": str(seconds),
                "tcpKeepAlive": "true",
            }
            return cls(source.kind, source.url, source.reads, properties)
        if source.kind == "mariadb":
            milliseconds = str(math.ceil(source.timeout.total_seconds() * 1000))
            properties |= {
                "connectTimeout": str(1000 * entering),
                "socketTimeout": milliseconds,
                "connectionTimeZone": "UTC",
                "forceConnectionTimeZoneToSession": "true",
            }
            # Spark knows the address of MySQL only. For others it puts names into quotes that make texts of
            # them here: every row would hold the names of its columns.
            address = "jdbc:mysql:" + source.url.split(":", 2)[2]
            return cls(
                source.kind,
                f"{address}{'&' if '?' in address else '?'}permitMysqlScheme",
                source.reads,
                properties,
            )
        # Without this, a file that is not there would be made.
        properties |= {"open_mode": _READ_ONLY, "busy_timeout": str(1000 * entering)}
        return cls(source.kind, f"jdbc:sqlite:{path}", source.reads, properties)


@dataclass(frozen=True)
class DatabaseColumn:
    """What a database says of a column."""

    name: str
    type: str
    """In the database's words, in small letters; empty where it has none."""
    may_be_null: bool


class Connection:
    """A connection of the driver's."""

    def __init__(self, java: Any, address: Address) -> None:
        self._java, self._address = java, address

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return what a query answers, as texts. Raises SourceUnavailable or SourceRefused."""
        try:
            statement = self._java.createStatement()
            with cleaning_up(statement.close):
                found = statement.executeQuery(sql)
                width = found.getMetaData().getColumnCount()
                rows = []
                while found.next():
                    rows.append(tuple(found.getString(index + 1) for index in range(width)))
                return rows
        except Py4JJavaError as error:
            raise _failure(error, self._address) from error

    def columns(self, sql: str) -> tuple[DatabaseColumn, ...]:
        """Return the columns of a query."""
        try:
            statement = self._java.createStatement()
            with cleaning_up(statement.close):
                facts = statement.executeQuery(sql).getMetaData()
                return tuple(
                    DatabaseColumn(
                        str(facts.getColumnLabel(index)),
                        self._type(facts, index),
                        facts.isNullable(index) != _NO_NULLS,
                    )
                    for index in range(1, facts.getColumnCount() + 1)
                )
        except Py4JJavaError as error:
            raise _failure(error, self._address) from error

    def _type(self, facts: Any, index: int) -> str:
        name = str(facts.getColumnTypeName(index) or "").lower()
        if self._address.kind == "sqlite" and name in _DECIMALS and (digits := facts.getPrecision(index)):
            # SQLite's driver leaves out what stands in brackets.
            return f"{name}({digits},{facts.getScale(index)})"
        return name

    def primary_key(self, schema: str | None, table: str) -> list[str]:
        """Return the columns of a table's primary key."""
        try:
            # What others call a schema is a catalog in MariaDB.
            is_catalog = self._address.kind == "mariadb"
            catalog = (schema or self._java.getCatalog()) if is_catalog else None
            within = None if is_catalog else (schema or self._java.getSchema())
            found = self._java.getMetaData().getPrimaryKeys(catalog, within, table)
            names = []
            while found.next():
                names.append(str(found.getString("COLUMN_NAME")))
        except Py4JJavaError as error:
            raise _failure(error, self._address) from error
        return names

    def hold_snapshot(self, looking: str) -> str:
        """Keep one state of the database for others, until this connection is closed; return its name.

        To a snapshot, a table that is truncated or rewritten later is empty. So `looking`, a query of no
        rows, first takes the lock of all that is going to be read: it lets everybody read and write, and
        makes TRUNCATE and ALTER TABLE wait.
        """
        self._begin()
        self.rows(looking)
        return str(self.rows("SELECT pg_export_snapshot()")[0][0])

    def enter_snapshot(self, snapshot: str) -> None:
        """See, from now on, what a snapshot shows."""
        self._begin()
        self._execute(_entering(snapshot))

    def _begin(self) -> None:
        # A connection that waits for Spark does nothing for a long while.
        self._execute("SET idle_in_transaction_session_timeout = 0")
        try:
            self._java.setReadOnly(True)
            self._java.setAutoCommit(False)
        except Py4JJavaError as error:
            raise _failure(error, self._address) from error

    def _execute(self, sql: str) -> None:
        try:
            statement = self._java.createStatement()
            with cleaning_up(statement.close):
                statement.execute(sql)
        except Py4JJavaError as error:
            raise _failure(error, self._address) from error

    def close(self) -> None:
        with suppress(*JvmFailure):
            self._java.close()


def connect(engine: Engine, address: Address) -> Connection:
    """Connect from the driver; what may pass is tried again, a few times.

    Raises SourceUnavailable, or SourceRefused for a wrong password, a database that is not there…
    """
    jvm: Any = engine.spark.sparkContext._jvm
    properties = jvm.java.util.Properties()
    for key, value in address.properties.items():
        properties.setProperty(key, value)
    pause = _FIRST_PAUSE
    for number in range(1, _TRIES + 1):
        try:
            driver = jvm.java.lang.Class.forName(_DRIVERS[address.kind]).getDeclaredConstructor(None)
            return Connection(driver.newInstance(None).connect(address.url, properties), address)
        except Py4JJavaError as error:
            failure = _failure(error, address, number)
            if number == _TRIES or isinstance(failure, SourceRefused):
                raise failure from error
            sleep(pause)
            pause *= 2
        except JvmFailure as error:
            raise explain(error, engine.log, what="cannot connect to the database") from error
    raise AssertionError  # the last try returns or raises


def jdbc_frame(
    engine: Engine,
    address: Address,
    rows: str,
    *,
    fetch_size: int,
    predicates: Sequence[str] = (),
    snapshot: str | None = None,
    schema: str | None = None,
) -> DataFrame:
    """Return rows of a database as a frame: one task for each predicate, each with its own connection.

    `rows` is a table or a query in brackets with a name; `schema` says types otherwise than the driver.
    """
    properties = {
        **address.properties,
        "driver": _DRIVERS[address.kind],
        # Without it PostgreSQL's driver reads all rows into memory before it returns the first.
        "fetchsize": str(fetch_size),
        # Times without a zone stay so, wherever the executors live.
        "preferTimestampNTZ": "true",
    }
    if snapshot is not None:
        properties["sessionInitStatement"] = _entering(snapshot)
    if schema is not None:
        properties["customSchema"] = schema
    reader = engine.spark.read
    if predicates:
        return reader.jdbc(address.url, rows, predicates=list(predicates), properties=properties)
    return reader.jdbc(address.url, rows, properties=properties)


def _entering(snapshot: str) -> str:
    return f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{snapshot}'"


def _failure(error: Py4JJavaError, address: Address, tries: int = 1) -> EskerError:
    java: Any = error.java_exception
    message = str(java.getMessage() or "")
    told = redact(first_line(message) or str(java.getClass().getSimpleName()))
    state = str(java.getSQLState() or "") if hasattr(java, "getSQLState") else ""
    is_busy = "SQLITE_BUSY" in message  # the part in brackets, which is not told
    if state.startswith(_PASSING) or is_busy:
        return SourceUnavailable(address.shown, told, tries)
    return SourceRefused(address.shown, told)
