"""Trino, by the properties that are exported for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type
from tests.readers.exported import text_for
from tests.readers.seen import Reader, Seen, seen
from tests.servers.trino import Trino

_PLAIN = {
    "boolean": "boolean",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double": "double",
    "varchar": "string",
    "varbinary": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}


@dataclass(frozen=True)
class TrinoReader:
    trino: Trino
    catalog: str

    def see(self, table: str, snapshot: int | None = None) -> Seen:
        at = "" if snapshot is None else f" FOR VERSION AS OF {snapshot}"
        with self.trino.connection() as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT * FROM {self.catalog}.{table}{at}")
            rows = cursor.fetchall()
            columns = [Column(each["name"], _type(each["typeSignature"])) for each in cursor._query.columns]
        return seen(columns, rows)

    def history(self, table: str) -> list[int]:
        space, _, name = table.rpartition(".")
        found = self.trino.rows(
            f'SELECT snapshot_id FROM {self.catalog}.{space}."{name}$snapshots" ORDER BY committed_at'
        )
        return [row[0] for row in found]


def _type(signature: Any) -> Type:
    """Return a type from Trino's own description of it."""
    parts = [each["value"] for each in signature["arguments"]]
    match signature["rawType"]:
        case "decimal":
            return Decimal(*parts)
        case "array":
            return Array(_type(parts[0]))
        case "map":
            return Map(_type(parts[0]), _type(parts[1]))
        case "row":
            fields = (Column(part["fieldName"]["name"], _type(part["typeSignature"])) for part in parts)
            return Struct(tuple(fields))
        case "uuid":
            return Plain("string", "uuid")
    return Plain(_PLAIN[signature["rawType"]])


@contextmanager
def opened(project: Path, trino: Trino) -> Iterator[Reader]:
    """Open the catalog of a project. Raises CannotExport."""
    with trino.catalog(text_for("trino", project)) as name:
        yield TrinoReader(trino, name)
