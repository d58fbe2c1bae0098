"""The JSON Schema of the project file, for editors."""

from __future__ import annotations

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
    overlay = [key for key in schema["properties"] if key not in ("project", "environments")]
    # An environment says only what differs, so nothing in it is required.
    schema["properties"]["environments"]["additionalProperties"] = {
        "type": "object",
        "properties": {key: {} for key in overlay},
        "additionalProperties": False,
    }
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "esker.yml"}
