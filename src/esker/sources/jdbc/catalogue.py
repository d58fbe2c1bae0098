"""What tables a database has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from esker.engine.jdbc import connect
from esker.engine.session import Engine
from esker.project.families import SourceTable
from esker.project.sources import JdbcSource
from esker.sources.jdbc.database import address_of
from esker.sources.jdbc.dialect import dialect_of


@dataclass(frozen=True)
class Catalogue:
    """The tables of a database that its user may see, without those of the database itself."""

    default_schema: str
    """Where names without a schema are looked for."""
    tables: Sequence[SourceTable]


def read_catalogue(engine: Engine, source: JdbcSource) -> Catalogue:
    """Ask a database for its tables and their primary keys. Raises SourceUnavailable or SourceRefused."""
    dialect = dialect_of(source.kind)
    connection = connect(engine, address_of(engine, source))
    try:
        keys: dict[tuple[str, str], list[str]] = {}
        for schema, name, column in connection.rows(dialect.listed_keys):
            keys.setdefault((str(schema), str(name)), []).append(str(column))
        tables = [
            SourceTable(str(schema), str(name), tuple(keys.get((str(schema), str(name)), ())))
            for schema, name in connection.rows(dialect.listed_tables)
        ]
        [[default]] = connection.rows(dialect.default_schema)
    finally:
        connection.close()
    return Catalogue(default or "", tables)
