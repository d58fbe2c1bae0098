"""`esker schema`."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from esker.project.json_schema import json_schema
from tests.cli.terminal import Terminal


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_schema_is_printed_whole(terminal: Terminal, options: tuple[str, ...]) -> None:
    """Standard output is the schema and nothing else, so it can be redirected into a file."""
    answer = terminal.ask("schema", *options)
    assert (answer.status, answer.stderr) == (0, "")
    assert json.loads(answer.stdout) == json_schema()
    Draft202012Validator.check_schema(json.loads(answer.stdout))
