"""`esker schema`."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from esker.project.json_schema import json_schema
from tests.cli.terminal import Terminal


def test_the_schema_is_printed_whole(terminal: Terminal) -> None:
    """Standard output is the schema and nothing else, so it can be redirected into a file."""
    answer = terminal.ask("schema")
    assert (answer.status, answer.stderr) == (0, "")
    assert json.loads(answer.stdout) == json_schema()
    Draft202012Validator.check_schema(json.loads(answer.stdout))
