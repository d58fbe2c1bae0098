"""What must be true of a quarantine, whatever happened to those who wrote it."""

from __future__ import annotations

import json
from collections import Counter

from pyspark.sql import Row
from typer.testing import CliRunner

from esker.cli.main import app
from tests.folder import Folder

_LARGE = 1_000


def waiting(folder: Folder) -> list[int]:
    """Return the ids of the rows of `sales` that wait, each as often as it does.

    The rows, what is told of them by rules, and what the command prints must be the same.
    """
    project = folder.open()
    rows = project.show_quarantined("sales", limit=_LARGE)
    assert len({row["id"] for row in rows}) == len(rows)
    listed = project.quarantined()
    assert {each.rules: each.rows for each in listed} == Counter(tuple(row["rules"]) for row in rows)
    printed = CliRunner().invoke(app, ["quarantine", "list", "--json", "--project", str(folder.path)])
    assert json.loads(printed.stdout) == {"quarantined": [each.as_json() for each in listed]}
    return sorted(_id(row["payload"]) for row in rows)


def resolved(folder: Folder) -> list[tuple[int, str]]:
    """Return the ids of the rows that are done with, and what became of each: one thing, told once."""
    rows = folder.open().table("shop.sales__quarantine").collect()
    bad = {(row["changeset"], row["row"]): row for row in rows if row["resolution"] is None}
    assert len(bad) == sum(row["resolution"] is None for row in rows)
    told = [row for row in rows if row["resolution"] is not None]
    assert len({_resolved_row(row) for row in told}) == len(told), f"a row is done with twice in {told}"
    return sorted((_id(bad[_resolved_row(row)]["payload"]), row["resolution"]) for row in told)


def _resolved_row(row: Row) -> tuple[int, int]:
    return row["of_changeset"], row["of_row"]


def _id(payload: str) -> int:
    return int(json.loads(payload)["id"])
