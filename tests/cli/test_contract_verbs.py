"""The commands about checked rows: quality, quarantine, approve and reject, on one project."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - {name: amount, logicalType: integer, logicalTypeOptions: {minimum: 0}}
    """,
    '- {type: sql, name: total, query: "SELECT sum(amount) FROM ${table}", mustBeLessThan: 1000}',
)


class Shell:
    """Runs commands on a project."""

    def __init__(self, terminal: Terminal, folder: Folder) -> None:
        self._terminal, self._project = terminal, ("--project", folder.path)

    def says(self, *words: str, status: int = 0) -> str:
        """Return what a command prints for people."""
        answer = self._terminal.ask(*words, *self._project)
        assert answer.status == status, answer
        return answer.stdout + answer.stderr

    def gives(self, *words: str, status: int = 0) -> dict[str, Any]:
        """Return what a command prints with --json."""
        answer = self._terminal.ask(*words, "--json", *self._project)
        assert answer.status == status, answer
        return answer.document


def write(folder: Folder, name: str, *rows: tuple[int, int]) -> None:
    folder.write_csv(f"landing/{name}.csv", ["id", "amount"], rows)


def figures(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["metric"]: each for each in document["figures"]}


def test_verbs(make_folder: MakeFolder, terminal: Terminal) -> None:
    """Each answers people and programs, and its exit status says how it went."""
    folder = contract_folder(make_folder, CONTRACT)
    shell = Shell(terminal, folder)
    assert "ESK-" in shell.says("quality", "shop.sales", status=2)
    write(folder, "a", (1, 10), (2, 20), (3, -1), (4, -2), (5, -9))
    assert shell.gives("run", "sales")["pipelines"][0]["rows"]["quarantined"] == 3

    shown = shell.gives("quarantine", "show", "sales", "--rule", "amount.minimum")["rows"]
    assert [json.loads(row["payload"])["id"] for row in shown] == ["3", "4", "5"]
    assert shell.gives("quarantine", "show", "sales", "--rule", "none")["rows"] == []
    assert "no such row waits" in shell.says("quarantine", "show", "sales", "--changeset", "9")
    assert "is less than 0" in shell.says("quarantine", "show", "sales", "--id", shown[0]["id"])

    shell.says("quarantine", "discard", "sales", status=2)
    refused = shell.gives("quarantine", "discard", "sales", status=2)["error"]
    assert "--all means every row" in refused["message"]
    gone = shell.gives("quarantine", "discard", "sales", "--id", shown[2]["id"])
    assert gone == {"status": "succeeded", "pipeline": "sales", "discarded": 1}
    change_contract(folder, "minimum: 0", "minimum: -1")
    replayed = shell.gives("quarantine", "replay", "sales")
    assert replayed["status"] == "succeeded"
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3]
    assert len(shell.gives("quarantine", "show", "sales")["rows"]) == 1
    assert "1 rows are left for good" in shell.says("quarantine", "discard", "sales", "--all")

    write(folder, "b", (6, 990))
    assert shell.gives("run", "sales", status=6)["pipelines"][0]["status"] == "held"
    held = figures(shell.gives("quality", "shop.sales", "--held"))
    assert (held["total"]["value"], held["total"]["passed"]) == (1019, False)
    assert figures(shell.gives("quality", "shop.sales"))["total"]["value"] == 29
    approved = shell.gives("approve", "sales")
    assert approved["pipelines"][0]["rows"]["inserted"] == 1
    assert "ESK-" in shell.says("approve", "sales", status=2)

    write(folder, "c", (7, 5))
    shell.says("run", "sales", status=6)
    rejected = shell.gives("reject", "sales")
    assert (rejected["status"], rejected["pipeline"]) == ("succeeded", "sales")
    assert "ESK-" in shell.says("reject", "sales", status=2)
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3, 6]

    now = figures(shell.gives("quality", "shop.sales", "--beside", "1"))
    assert (now["record_count"]["value"], now["record_count"]["earlier"]) == (4, 2)
    then = figures(shell.gives("quality", "shop.sales", "--as-of", "1"))
    assert (then["record_count"]["value"], then["rows_bad"]["value"]) == (2, 3)
    table = shell.says("quality", "shop.sales", "--as-of", "1", "--beside", "1")
    assert "earlier" in table
    assert "record_count" in table
    assert "nothing had been measured" in shell.says("quality", "shop.sales", "--as-of", "2001-01-01")
