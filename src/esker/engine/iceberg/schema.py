"""A table's columns for Arrow: types, and the field ids by which Iceberg knows columns in files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_ID = b"PARQUET:field_id"
NAME_MAPPING = "schema.name-mapping.default"
"""Table property: the names that columns have in files without field ids."""


@dataclass(frozen=True)
class FieldSchema:
    """The columns of a table, with their field ids."""

    schema_id: int
    arrow: pa.Schema
    is_complete: bool
    """False where a column has a type that Arrow does not write as Iceberg wants it, or a default that
    rows of older files have."""
    ids: dict[str, int]
    """The field id of each column, and of each field inside one by its path: `address.city`."""
    names: dict[int, tuple[str, ...]]
    """By field id, the names that a column has in files without field ids, where the table says so."""


def field_schema(document: dict[str, Any], mapping: Sequence[dict[str, Any]] = ()) -> FieldSchema:
    """Read an Iceberg schema and a name mapping, given as the JSON of the table's metadata."""
    fields = [_field(field) for field in document["fields"]]
    known = [field for field in fields if field is not None]
    is_complete = len(known) == len(fields) and not _has_default(document)
    names = {entry["field-id"]: tuple(entry["names"]) for entry in mapping if "field-id" in entry}
    return FieldSchema(
        document["schema-id"], pa.schema(known), is_complete, dict(field_paths(document)), names
    )


def field_id(field: pa.Field) -> int:
    """Return the id that Iceberg gave a field; -1 where a file names none."""
    metadata = field.metadata or {}
    return int(metadata.get(_ID, b"-1"))


def field_ids(path: str) -> dict[str, int]:
    """Return the field ids that the footer of a local Parquet file gives to its columns, if it gives any."""
    fields = pq.read_schema(path)
    return {field.name: number for field in fields if (number := field_id(field)) != -1}


def with_id(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    """Return an Arrow field that carries a field id."""
    return pa.field(name, kind, nullable, metadata={_ID: str(number).encode()})


def conform(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return values of a file as the type that a table has now.

    Fields inside are found by their ids: Arrow's own cast goes by name, and would lose renamed ones.
    """
    kind = values.type
    if pa.types.is_struct(wanted):
        stored = {field_id(field): values.field(index) for index, field in enumerate(kind)}
        if set(stored) == {-1}:
            return values.cast(wanted)
        parts = [
            conform(stored[field_id(field)], field.type)
            if field_id(field) in stored
            else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=values.is_null())
    if pa.types.is_map(wanted):
        keys, items = conform(values.keys, wanted.key_type), conform(values.items, wanted.item_type)
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=wanted, mask=values.is_null())
    if pa.types.is_list(wanted):
        inner = conform(values.values, wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(values), inner, type=wanted, mask=values.is_null())
    return values.cast(wanted)


def _offsets(values: pa.Array) -> pa.Array:
    # A slice begins in the middle of its buffers; a mask is only taken for offsets that do not.
    return pa.array(values.offsets.to_pylist(), pa.int32()) if values.offset else values.offsets


def field_paths(kind: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield the ids of all fields of a type, each with its path."""
    if isinstance(kind, str):
        return
    inner = [(field["name"], field["id"], field["type"]) for field in kind.get("fields", ())]
    inner += [(part, kind[f"{part}-id"], kind[part]) for part in ("element", "key", "value") if part in kind]
    for name, number, part in inner:
        yield f"{path}{name}", number
        yield from field_paths(part, f"{path}{name}.")


def _has_default(kind: Any) -> bool:
    """Tell whether a field of a type has a value in files that lack it."""
    if isinstance(kind, str):
        return False
    fields = kind.get("fields", ())
    inner = [
        *(field["type"] for field in fields),
        *(kind[p] for p in ("element", "key", "value") if p in kind),
    ]
    return any("initial-default" in field for field in fields) or any(_has_default(part) for part in inner)


def _field(field: dict[str, Any]) -> pa.Field | None:
    kind = _type(field["type"])
    if kind is None:
        return None
    return with_id(field["name"], kind, field["id"], nullable=not field["required"])


def _type(kind: Any) -> pa.DataType | None:
    if isinstance(kind, str):
        if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        return _PLAIN.get(kind)
    match kind["type"]:
        case "struct":
            fields = [_field(field) for field in kind["fields"]]
            return None if any(field is None for field in fields) else pa.struct(fields)
        case "list":
            element = _type(kind["element"])
            if element is None:
                return None
            required = kind["element-required"]
            return pa.list_(with_id("element", element, kind["element-id"], nullable=not required))
        case "map":
            key, value = _type(kind["key"]), _type(kind["value"])
            if key is None or value is None:
                return None
            return pa.map_(
                with_id("key", key, kind["key-id"], nullable=False),
                with_id("value", value, kind["value-id"], nullable=not kind["value-required"]),
            )
    return None
