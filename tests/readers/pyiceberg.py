"""PyIceberg, by the program that is exported for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg import types as iceberg
from pyiceberg.catalog import Catalog

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type
from tests.readers.exported import run_for
from tests.readers.seen import Reader, Seen, seen

_PLAIN: dict[type[Any], Type] = {
    iceberg.BooleanType: Plain("boolean"),
    iceberg.IntegerType: Plain("int"),
    iceberg.LongType: Plain("bigint"),
    iceberg.FloatType: Plain("float"),
    iceberg.DoubleType: Plain("double"),
    iceberg.StringType: Plain("string"),
    iceberg.UUIDType: Plain("string", "uuid"),
    iceberg.BinaryType: Plain("binary"),
    iceberg.DateType: Plain("date"),
    iceberg.TimestampType: Plain("timestamp_ntz"),
    iceberg.TimestamptzType: Plain("timestamp"),
}


@dataclass(frozen=True)
class PyIcebergReader:
    catalog: Catalog

    def see(self, table: str, snapshot: int | None = None) -> Seen:
        found = self.catalog.load_table(table)
        scan = found.scan(snapshot_id=snapshot)
        rows = scan.to_arrow()
        columns = [Column(field.name, _type(field.field_type)) for field in scan.projection().fields]
        return seen(columns, [tuple(row.values()) for row in rows.to_pylist()])

    def history(self, table: str) -> list[int]:
        return [each.snapshot_id for each in self.catalog.load_table(table).snapshots()]


def _type(kind: Any) -> Type:
    match kind:
        case iceberg.DecimalType():
            return Decimal(kind.precision, kind.scale)
        case iceberg.ListType():
            return Array(_type(kind.element_type))
        case iceberg.MapType():
            return Map(_type(kind.key_type), _type(kind.value_type))
        case iceberg.StructType():
            return Struct(tuple(Column(f.name, _type(f.field_type), f.required) for f in kind.fields))
        case iceberg.FixedType():
            return Plain("binary", f"fixed({len(kind)})")
    return _PLAIN[type(kind)]


@contextmanager
def opened(project: Path) -> Iterator[Reader]:
    """Open the catalog of a project. Raises CannotExport."""
    catalog = run_for("pyiceberg", project)["catalog"]
    try:
        yield PyIcebergReader(catalog)
    finally:
        catalog.close()
