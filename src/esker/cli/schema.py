"""`esker schema`: the project file's JSON Schema."""

from __future__ import annotations

from esker.cli.options import JsonOption


def schema(as_json: JsonOption = False) -> None:
    """Print the JSON Schema of esker.yml, for editors. It is JSON with and without --json."""
    from esker.cli.output import print_json
    from esker.project.json_schema import json_schema

    print_json(json_schema())
