"""`esker schema`: the project file's JSON Schema."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of esker.yml, for editors."""
    from esker.cli.output import print_json
    from esker.project.json_schema import json_schema

    print_json(json_schema())
