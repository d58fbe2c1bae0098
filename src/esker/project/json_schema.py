"""The JSON Schema of the project file, for editors."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from esker.project.pipelines import Pipeline
from esker.project.project import Project


def json_schema() -> dict[str, Any]:
    """Return the schema that `esker schema` prints."""
    schema = Project.model_json_schema()
    pipeline = Pipeline.model_json_schema(ref_template="#/$defs/{model}")
    schema["$defs"] |= pipeline.pop("$defs", {})
    # Defaults may hold a part of a source: the pipeline says the rest.
    pipeline["properties"]["source"] = {"type": "object"}
    partial = {key: value for key, value in pipeline.items() if key != "required"}
    schema["properties"]["defaults"] = partial | {
        "title": "Defaults",
        "description": schema["properties"]["defaults"].get("description", ""),
    }
    schema["$defs"] |= _families(schema["$defs"], partial)
    names = schema["properties"]["pipelines"]["patternProperties"]
    for pattern, one in names.items():
        names[pattern] = {"anyOf": [one, {"$ref": "#/$defs/Family"}]}
    overlay = [key for key in schema["properties"] if key not in ("project", "environments")]
    # An environment says only what differs, so nothing in it is required.
    schema["properties"]["environments"]["additionalProperties"] = {
        "type": "object",
        "properties": {key: {} for key in overlay},
        "additionalProperties": False,
    }
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "esker.yml"}


def _families(known: dict[str, Any], partial: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry for many tables may hold: keys of pipelines and of databases, and its own."""
    source = deepcopy(known["JdbcSource"])
    texts = {"type": "array", "items": {"type": "string"}}
    for key in ("table", "query"):
        del source["properties"][key]
    source["description"] = "Read many tables of a database. The other keys are those of one table."
    source["properties"] |= {
        "tables": {
            "anyOf": [{"type": "string"}, texts],
            "description": "Names and patterns of tables: `public.*`, or `*` for those of the default one.",
        },
        "exclude": texts
        | {
            "description": "Names and patterns of tables that are left out; without a schema, in all schemas."
        },
    }
    source["required"] = [*source["required"], "tables"]
    family = deepcopy(known["Pipeline"])
    family["description"] = (
        "Carry the rows of many tables of a database, each into a table of its own. The other keys are those "
        "of a pipeline, for all of them."
    )
    family["properties"] |= {
        "source": {"$ref": "#/$defs/JdbcTables"},
        "table": {
            "type": "string",
            "description": "Namespace and table, with `{table}` in it, and `{schema}` where several are "
            "read: `raw.{schema}_{table}`.",
        },
        "overrides": {
            "type": "object",
            "additionalProperties": {key: value for key, value in partial.items() if key != "description"},
            "description": "What is other for some tables, by name or pattern: keys of a pipeline. One "
            "without a value (`cursor: null`) takes the key away.",
        },
    }
    return {"JdbcTables": source, "Family": family}
