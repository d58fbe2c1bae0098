"""Every promise names a test, and that test exists."""

from __future__ import annotations

import ast
import re

from tests.docs.test_reference import ROOT

PROMISE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_promise_is_shown() -> None:
    """A test that was renamed or removed takes its promise with it, or a new one is named."""
    lines = (ROOT / "docs" / "promises.md").read_text().splitlines()
    promises = [line for line in lines if line.startswith("| ") and not line.startswith("| What happens")]
    assert len(promises) > 30
    for line in promises:
        shown = PROMISE.findall(line)
        assert shown, f"no test shows: {line}"
        for path, name in shown:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
                path,
                name,
            )
