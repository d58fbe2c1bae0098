"""A Python function as a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.deliver.targets import Message, Refused, Target
from esker.errors import TargetFunctionFailed, TargetFunctionNotFound
from tests.deliver.targets.made import message, target_of

FUNCTIONS = """
from pathlib import Path

def keep(messages, file):
    with open(file, "a") as stream:
        for each in messages:
            stream.write(f"{each.op} {each.id} {each.version} {each.body}\\n")
    return {each.id: "too old" for each in messages if each.version < 3}

def fail(messages):
    return 1 / 0

def wrong(messages):
    return ["a"]

def stranger(messages):
    return {"zebra": "unknown"}

CONSTANT = 7
"""


def function(folder: Path, name: str, **arguments: Any) -> Target:
    (folder / "targets.py").write_text(FUNCTIONS)
    return target_of(folder, {"type": "python", "function": f"targets.py:{name}", "arguments": arguments})


def send(target: Target, *messages: Message) -> list[Refused]:
    with target.open() as sender:
        return sender.send(messages)


def test_a_function_gets_messages_and_may_refuse_some(tmp_path: Path) -> None:
    """It sees what they say, in their order, and what its declaration says besides."""
    target = function(tmp_path, "keep", file=str(tmp_path / "kept"))
    refused = send(
        target, message("a", 2, title="A"), message("b", 5, "update", title="B"), message("c", 6, "delete")
    )
    assert [(each.message.id, each.reason) for each in refused] == [("a", "too old")]
    assert (tmp_path / "kept").read_text().splitlines() == [
        "insert a 2 {'title': 'A'}",
        "update b 5 {'title': 'B'}",
        "delete c 6 None",
    ]
    assert target.describe() == "function targets.py:keep"


def test_a_function_is_not_called_for_nothing(tmp_path: Path) -> None:
    """Without messages there is nothing to do."""
    assert send(function(tmp_path, "fail")) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("fail", "ZeroDivisionError: division by zero (targets.py, line 11)"),
        ("wrong", "It returned list"),
        ("stranger", "'zebra'"),
        ("keep", "missing 1 required positional argument: 'file'"),
    ],
)
def test_a_function_that_fails_is_told_with_its_line(tmp_path: Path, name: str, why: str) -> None:
    """The delivery ends; nobody knows what has arrived, so all is sent again."""
    with pytest.raises(TargetFunctionFailed, match=name) as raised:
        send(function(tmp_path, name), message("a", 2))
    assert why in raised.value.reason


@pytest.mark.parametrize("name", ["nothing", "CONSTANT"])
def test_a_function_that_is_not_there(tmp_path: Path, name: str) -> None:
    """Told before anything is read."""
    with pytest.raises(TargetFunctionNotFound, match=name):
        function(tmp_path, name).open()
