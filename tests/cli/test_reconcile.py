"""`esker reconcile`: what differs is shown; what would be deleted is held until its number is approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.folder import Folder

pytestmark = pytest.mark.spark


def test_a_source_that_lost_rows(terminal: Terminal, tmp_path: Path, spark_running: None) -> None:
    """Shown, held with status 6, and repaired when the figure is approved."""
    pipeline = Folder.files_pipeline(mode="upsert", key=["id"], source={"on_changed": "ignore"}, lane="small")
    folder = Folder(tmp_path, pipelines={"sales": pipeline})
    folder.write_csv("landing/a.csv", ["id", "v"], [(number, "a") for number in range(10)])
    folder.run()
    same = terminal.ask("reconcile", "sales", "--project", tmp_path)
    assert (same.status, same.stdout.splitlines()[-1]) == (0, "they are the same"), same.stderr

    folder.write_csv("landing/a.csv", ["id", "v"], [(1, "b"), *((n, "a") for n in range(2, 7)), (77, "c")])
    shown = terminal.ask("reconcile", "sales", "--project", tmp_path)
    assert shown.status == 0
    assert "7 keys in the source, 10 in shop.sales" in shown.stdout
    told = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines() if "│" in line
    ]
    assert told == [["missing", "1", "77"], ["different", "1", "1"], ["vanished", "4", "0, 7, 8, 9"]]
    assert shown.stdout.splitlines()[-1] == "to repair it: esker reconcile sales --repair"

    for approved in ((), ("--approve", "3")):
        held = terminal.ask("reconcile", "sales", "--repair", *approved, "--project", tmp_path)
        assert held.status == 6
        assert "esker reconcile sales --repair --approve 4" in held.stderr
    assert len(folder.rows()) == 10

    repaired = terminal.ask("reconcile", "sales", "--repair", "--approve", "4", "--project", tmp_path)
    assert repaired.status == 0, repaired.stderr
    assert "repaired: 1 inserted, 1 updated, 4 deleted, 5 unchanged (changeset 2)" in repaired.stdout
    document = terminal.ask("reconcile", "sales", "--project", tmp_path, "--json").document
    assert (document["source_keys"], document["table_keys"]) == (7, 7)
    assert (document["missing"], document["different"], document["vanished"]) == (0, 0, 0)

    unknown = terminal.ask("reconcile", "sale", "--project", tmp_path, "--json")
    assert (unknown.status, unknown.error["remedy"]) == (2, "Did you mean sales?")
