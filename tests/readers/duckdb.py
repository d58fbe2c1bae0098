"""DuckDB, by the program that is exported for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

from esker.project import load_project
from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type
from tests.readers.exported import run_for
from tests.readers.seen import Reader, Seen, seen

EXTENSIONS = ("avro", "httpfs", "iceberg")
_PLAIN = {
    "boolean": "boolean",
    "integer": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "varchar": "string",
    "blob": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}


@dataclass(frozen=True)
class DuckDBReader:
    connection: duckdb.DuckDBPyConnection
    names: dict[str, Any]
    """Of the program."""
    catalog: str

    def see(self, table: str, snapshot: int | None = None) -> Seen:
        if "location" in self.names:
            at = "" if snapshot is None else f", snapshot_from_id => {snapshot}::UBIGINT"
            source = f"iceberg_scan({self._location(table)}{at})"
        else:
            at = "" if snapshot is None else f" AT (VERSION => {snapshot})"
            source = f"{self._name(table)}{at}"
        found = self.connection.sql(f"SELECT * FROM {source}")
        columns = [Column(name, _type(kind)) for name, kind in zip(found.columns, found.types, strict=True)]
        return seen(columns, [tuple(row.values()) for row in found.to_arrow_table().to_pylist()])

    def history(self, table: str) -> list[int]:
        source = self._location(table) if "location" in self.names else self._name(table)
        found = self.connection.sql(
            f"SELECT snapshot_id FROM iceberg_snapshots({source}) ORDER BY timestamp_ms, sequence_number"
        )
        return [int(row[0]) for row in found.fetchall()]

    def _location(self, table: str) -> str:
        return str(self.names["text"](self.names["location"](*table.split("."))))

    def _name(self, table: str) -> str:
        return ".".join(f'"{part}"' for part in (self.catalog, *table.split(".")))


def _type(kind: Any) -> Type:
    match kind.id:
        case "decimal":
            (_, precision), (_, scale) = kind.children
            return Decimal(precision, scale)
        case "list":
            return Array(_type(kind.children[0][1]))
        case "map":
            (_, key), (_, value) = kind.children
            return Map(_type(key), _type(value))
        case "struct":
            return Struct(tuple(Column(name, _type(inner)) for name, inner in kind.children))
        case "uuid":
            return Plain("string", "uuid")
    return Plain(_PLAIN[kind.id])


def with_extensions(home: Path) -> Path:
    """Install the extensions of the Python packages into a home folder: programs then fetch none."""
    if not home.is_dir():
        connection = duckdb.connect(config={"extension_directory": str(home / ".duckdb/extensions")})
        for name in EXTENSIONS:
            package = find_spec(f"duckdb_extension_{name}")
            assert package is not None, name
            assert package.origin is not None
            [file] = Path(package.origin).parent.glob(f"extensions/*/{name}.duckdb_extension")
            connection.install_extension(str(file))
        connection.close()
    return home


@contextmanager
def opened(project: Path, home: Path) -> Iterator[Reader]:
    """Open the catalog of a project, with the extensions of a home folder. Raises CannotExport."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        names = run_for("duckdb", project)
    connection = names["connection"]
    try:
        yield DuckDBReader(connection, names, load_project(project).catalog_name(None))
    finally:
        connection.close()
