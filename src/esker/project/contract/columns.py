"""The properties of a contract as columns of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from esker.project.contract.model import ContractColumn
from esker.project.contract.options import Mistake, Options
from esker.project.document import Document, KeyPath
from esker.project.types import (
    Array,
    Column,
    Map,
    Plain,
    Struct,
    TooManyDigits,
    Type,
    TypeSyntaxError,
    parse_type,
)

_LOGICAL = {
    "string": "string",
    "integer": "bigint",
    "number": "double",
    "boolean": "boolean",
    "date": "date",
    "time": "string",
}
_FORMATS = {"i32": "int", "i64": "bigint", "f32": "float", "f64": "double"}


def column_name(declared: dict[str, Any]) -> str:
    """Return the name that a property has in the table."""
    return str(declared.get("physicalName") or declared.get("name") or "")


def read_columns(document: Document, path: KeyPath) -> list[ContractColumn]:
    """Return the columns that the properties below a place declare, or raise Mistake."""
    columns: list[ContractColumn] = []
    for index, declared in enumerate(document.at((*path, "properties")) or ()):
        place = (*path, "properties", index)
        if declared.get("semanticType") in ("measure", "dimension"):
            continue  # computed by whoever queries the table
        column = _column(document, place, declared)
        if any(column.name.lower() == other.name.lower() for other in columns):
            raise Mistake((*place, "name"), f'column "{column.name}" stands there twice')
        options = Options(document, place)
        columns.append(
            ContractColumn(
                column,
                renamed_from=options.text("renamedFrom"),
                classification=declared.get("classification"),
                tags=tuple(declared.get("tags") or ()),
                is_unique=bool(declared.get("unique")),
            )
        )
    return columns


def _column(document: Document, path: KeyPath, declared: dict[str, Any]) -> Column:
    name = column_name(declared)
    if not name:
        raise Mistake(path, 'key "name" is missing')
    kind = _type(document, path, declared)
    return Column(name, kind, _is_required(declared), _doc(declared))


def _doc(declared: dict[str, Any]) -> str | None:
    """Return a property's description, and those of its elements, values and keys, which Iceberg has no
    place for."""
    own = declared.get("description")
    inside = [f"{name}: {text}" for name, text in _docs_inside(declared)]
    return "; ".join([*([str(own)] if own else []), *inside]) or None


def _docs_inside(declared: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    parts = {"element": declared.get("items"), **_dict(declared.get("map"))}
    for name, inner in parts.items():
        if isinstance(inner, dict):
            if inner.get("description"):
                yield f"{path}{name}", str(inner["description"])
            yield from _docs_inside(inner, f"{path}{name}.")


def _is_required(declared: dict[str, Any]) -> bool:
    return bool(declared.get("required") or declared.get("primaryKey"))


def _type(document: Document, path: KeyPath, declared: dict[str, Any]) -> Type:
    """Return a property's type. What is said of the physical type wins when it can be read."""
    options = Options(document, path)
    if (own := options.text("icebergType")) is not None:
        try:
            return _described(path, parse_type(own), declared)
        except TypeSyntaxError as error:
            raise Mistake(options.place("icebergType"), str(error)) from None
    physical = declared.get("physicalType")
    if physical is not None:
        try:
            return _described(path, parse_type(_plain(physical)), declared)
        except TypeSyntaxError as error:
            # A number in place of such a decimal would lose digits.
            if declared.get("logicalType") is None or isinstance(error, TooManyDigits):
                raise Mistake((*path, "physicalType"), str(error)) from None
    return _logical_type(document, path, declared)


def _described(path: KeyPath, kind: Type, declared: dict[str, Any]) -> Type:
    """Return a type that is spelled out, with what the properties inside say of its fields beyond types."""
    match kind:
        case Struct(fields):
            found = list(fields)
            for index, each in enumerate(declared.get("properties") or ()):
                place = (*path, "properties", index)
                name = column_name(each).lower()
                at = next((i for i, field in enumerate(found) if field.name.lower() == name), None)
                if at is None:
                    raise Mistake(place, f'type {kind} has no field "{column_name(each)}"')
                found[at] = replace(
                    found[at],
                    type=_described(place, found[at].type, each),
                    required=found[at].required or _is_required(each),
                    doc=_doc(each) or found[at].doc,
                )
            return Struct(tuple(found))
        case Array(element, required):
            items = _dict(declared.get("items"))
            inner = _described((*path, "items"), element, items)
            return Array(inner, required or _is_required(items))
        case Map(key, value, required):
            parts = _dict(declared.get("map"))
            of_key, of_value = _dict(parts.get("key")), _dict(parts.get("value"))
            return Map(
                _described((*path, "map", "key"), key, of_key),
                _described((*path, "map", "value"), value, of_value),
                required or _is_required(of_value),
            )
    return kind


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _logical_type(document: Document, path: KeyPath, declared: dict[str, Any]) -> Type:
    logical, options = declared.get("logicalType"), declared.get("logicalTypeOptions") or {}
    match logical:
        case "object":
            inner = declared.get("properties") or ()
            if not inner:
                raise Mistake(path, "an object needs properties:, its fields")
            fields = [_column(document, (*path, "properties", i), each) for i, each in enumerate(inner)]
            return Struct(tuple(fields))
        case "array":
            items = declared.get("items")
            if items is None:
                raise Mistake(path, "an array needs items:, the type of its elements")
            return Array(_type(document, (*path, "items"), items), _is_required(items))
        case "map":
            parts = declared.get("map") or {}
            if "key" not in parts or "value" not in parts:
                raise Mistake(path, "a map needs map: {key: …, value: …}")
            key, value = (_type(document, (*path, "map", part), parts[part]) for part in ("key", "value"))
            return Map(key, value, _is_required(parts["value"]))
        case "vector":
            return Array(Plain("float"))
        case "timestamp":
            return Plain("timestamp_ntz" if options.get("timezone") is False else "timestamp")
        case None:
            raise Mistake(path, "the column has no type; write logicalType: or physicalType:")
    return parse_type(_FORMATS.get(str(options.get("format")), _LOGICAL[logical]))


def is_known(physical: str) -> bool:
    """Tell whether a physical type is one that tables here can have."""
    try:
        parse_type(_plain(physical))
    except TypeSyntaxError:
        return False
    return True


def _plain(physical: str) -> str:
    """Return a type of a database in the words of Spark, where it has the same meaning."""
    text = physical.strip()
    words = {
        "character varying": "string",
        "double precision": "double",
        "timestamp without time zone": "timestamp_ntz",
        "timestamp with time zone": "timestamp",
        "int8": "bigint",
        "int4": "int",
        "int2": "int",
        "smallint": "int",
        "tinyint": "int",
        "float8": "double",
        "float4": "float",
        "datetime": "timestamp_ntz",
        "uuid": "string",
        "json": "string",
        "jsonb": "string",
    }
    bare = re.sub(r"\s*\(\s*\d+\s*\)$", "", text.lower())
    if bare in words:
        return words[bare]
    return re.sub(r"^char\s*\(", "string(", text, flags=re.IGNORECASE)
