"""Write a contract for rows that were looked at: a draft, for a person to edit."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal as Number
from typing import Any

from ruamel.yaml import YAML

from esker.contracts.profile import ColumnProfile
from esker.project.types import Array, Decimal, Map, Plain, Struct, Type

VERSION = "v3.1.0"
_LOGICAL = {
    "string": "string",
    "boolean": "boolean",
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "binary": "string",
}


def draft(pipeline: str, table: str, profiles: Sequence[ColumnProfile], key: Sequence[str] = ()) -> str:
    """Return a contract for a table with columns like these, as YAML."""
    document = {
        "apiVersion": VERSION,
        "kind": "DataContract",
        "id": pipeline,
        "version": "0.1.0",
        "status": "draft",
        "schema": [
            {
                "name": table.rpartition(".")[2],
                "physicalName": table,
                "properties": [_property(each, tuple(key)) for each in profiles],
            }
        ],
    }
    stream = io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    yaml.allow_unicode = True
    yaml.dump(document, stream)
    rows = profiles[0].rows if profiles else 0
    return (
        f"# A draft, made from {rows:,} rows: what was so in these need not be so in all. Edit it.\n"
        "# While status is draft, batches are held until somebody approves them; active publishes.\n"
        f"{stream.getvalue()}"
    )


def _property(seen: ColumnProfile, key: tuple[str, ...]) -> dict[str, Any]:
    column = seen.column
    found: dict[str, Any] = {"name": column.name, **_type(column.type)}
    if column.doc:
        found["description"] = column.doc
    if column.name in key:
        found |= {"primaryKey": True, "primaryKeyPosition": key.index(column.name) + 1}
    if seen.is_required:
        found["required"] = True
    if seen.is_unique and column.name not in key:
        found["unique"] = True
    if seen.personal is not None:
        found["classification"] = "personal"
        found["tags"] = [f"personal:{seen.personal.kind}"]
        found["customProperties"] = [{"property": "guessedFrom", "value": seen.personal.why}]
    elif examples := [_plain(value) for value in seen.examples]:
        # Values of people are no examples.
        found["examples"] = examples
    if seen.values and seen.personal is None:
        found["quality"] = [
            {
                "metric": "invalidValues",
                "mustBe": 0,
                "severity": "warning",
                "arguments": {"validValues": [_plain(value) for value in seen.values]},
            }
        ]
    return found


def _type(kind: Type) -> dict[str, Any]:
    match kind:
        case Plain(name):
            found: dict[str, Any] = {"logicalType": _LOGICAL[name], "physicalType": name}
        case Decimal():
            found = {"logicalType": "number", "physicalType": str(kind)}
        case Array(element):
            found = {"logicalType": "array", "items": {"name": "element", **_type(element)}}
        case Map():
            # The standard knows maps only since v3.2; the physical type says it all.
            found = {"logicalType": "object", "physicalType": str(kind)}
        case Struct(fields):
            inner = [{"name": field.name, **_type(field.type)} for field in fields]
            found = {"logicalType": "object", "properties": inner}
    return found


def _plain(value: Any) -> Any:
    """Return a value as it stands in YAML."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date | Number):
        return str(value)
    return value
