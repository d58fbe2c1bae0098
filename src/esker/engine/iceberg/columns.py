"""Columns as Iceberg's own JSON describes them, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type

_NAMES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_FROM = {name: spark for spark, name in _NAMES.items()} | {"uuid": "string"}


def schema_json(columns: Sequence[Column], identifier: Sequence[str] = ()) -> dict[str, Any]:
    """Return columns as a schema of Iceberg's. Columns of `identifier` identify a row."""
    ids = count(1)
    fields = [_field(column, ids) for column in columns]
    by_name = {field["name"].lower(): field["id"] for field in fields}
    found: dict[str, Any] = {"type": "struct", "schema-id": 0, "fields": fields}
    if identifier:
        found["identifier-field-ids"] = [by_name[name.lower()] for name in identifier]
    return found


def columns_of(schema: dict[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a schema of Iceberg's."""
    return tuple(
        Column(field["name"], _type_of(field["type"]), field["required"], field.get("doc"))
        for field in schema["fields"]
    )


def _field(column: Column, ids: Iterator[int]) -> dict[str, Any]:
    found = {"id": next(ids), "name": column.name, "required": column.required}
    found["type"] = _type_json(column.type, ids)
    return found | ({"doc": column.doc} if column.doc else {})


def _type_json(kind: Type, ids: Iterator[int]) -> Any:
    match kind:
        case Struct(fields):
            return {"type": "struct", "fields": [_field(field, ids) for field in fields]}
        case Array(element, required):
            number = next(ids)
            inner = _type_json(element, ids)
            return {"type": "list", "element-id": number, "element": inner, "element-required": required}
        case Map(key, value, required):
            keys, values = next(ids), next(ids)
            return {
                "type": "map",
                "key-id": keys,
                "key": _type_json(key, ids),
                "value-id": values,
                "value": _type_json(value, ids),
                "value-required": required,
            }
        case Decimal(precision, scale):
            return f"decimal({precision}, {scale})"
        case Plain(stored=str(stored)):
            return stored.replace("(", "[").replace(")", "]")
        case Plain(name):
            return _NAMES.get(name, name)


def _type_of(kind: Any) -> Type:
    if isinstance(kind, str):
        if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind):
            return Decimal(int(decimal[1]), int(decimal[2]))
        if fixed := re.fullmatch(r"fixed\[(\d+)\]", kind):
            return Plain("binary", f"fixed({fixed[1]})")
        return Plain(_FROM.get(kind, kind), "uuid" if kind == "uuid" else None)
    match kind["type"]:
        case "list":
            return Array(_type_of(kind["element"]), kind["element-required"])
        case "map":
            return Map(_type_of(kind["key"]), _type_of(kind["value"]), kind["value-required"])
    return Struct(columns_of(kind))
