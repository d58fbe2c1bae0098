"""Columns of dlt as columns of Iceberg tables."""

from __future__ import annotations

from typing import Any

from dlt.common.schema.typing import TColumnSchema

_PLAIN = {
    "text": "string",
    "double": "double",
    "bool": "boolean",
    "binary": "binary",
    "date": "date",
    # dlt writes JSON as text. Iceberg as Spark knows it has no time of a day.
    "json": "string",
    "time": "string",
}
_INT_BITS = 32


def declared(column: TColumnSchema) -> dict[str, Any]:
    """Return a column as a pipeline declares it."""
    found: dict[str, Any] = {"type": _type(column)}
    if column.get("nullable") is False:
        found["required"] = True
    if doc := column.get("description"):
        found["doc"] = doc
    return found


def _type(column: TColumnSchema) -> str:
    kind = column["data_type"]
    precision, scale = column.get("precision"), column.get("scale")
    match kind:
        case "bigint":
            return "int" if precision is not None and precision <= _INT_BITS else "bigint"
        case "timestamp":
            return "timestamp_ntz" if column.get("timezone") is False else "timestamp"
        case "decimal":
            return f"decimal({precision or 38},{scale if scale is not None else 9})"
        case "wei":
            return "decimal(38,0)"
    return _PLAIN[kind]
