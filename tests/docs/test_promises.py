"""Every promise names a test that `make test` runs, or says that the test is for soak."""

from __future__ import annotations

import ast
import re

import pytest

from tests.conftest import COLLECTED
from tests.docs.test_reference import ROOT

PROMISE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`( \(soak\))?")


def test_every_promise_is_shown(request: pytest.FixtureRequest) -> None:
    """A test that was renamed, removed or moved to soak takes its promise with it.

    Which tests are for soak is known of the files that this run collected: of all, in `make test`.
    """
    lines = (ROOT / "docs" / "promises.md").read_text().splitlines()
    promises = [line for line in lines if line.startswith("| ") and not line.startswith("| What happens")]
    assert len(promises) > 30
    in_soak_only = _in_soak_only(request.config.stash[COLLECTED])
    wrong: set[str] = set()
    for line in promises:
        shown = PROMISE.findall(line)
        assert shown, f"no test shows: {line}"
        for path, name, soak in shown:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
                path,
                name,
            )
            if bool(soak) != in_soak_only.get((path, name), bool(soak)):
                wrong.add(f"{path}::{name}")
    assert not wrong, "in soak only, or not, unlike what the page says"


def _in_soak_only(collected: list[pytest.Item]) -> dict[tuple[str, str], bool]:
    """Return for each collected test whether all its cases are for soak."""
    found: dict[tuple[str, str], bool] = {}
    for item in collected:
        path, _, rest = item.nodeid.partition("::")
        place = path, rest.partition("[")[0]
        found[place] = found.get(place, True) and item.get_closest_marker("soak") is not None
    return found
