"""A reindex whose tasks are done by several machines: they share the state database, and nothing else."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from esker.ledger.leases import held
from tests.command import CHILD_SPARK, finish, start
from tests.load.works import Works
from tests.servers.postgres import Database

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.server]


def told(path: Path) -> list[tuple[str, int]]:
    """Return id and changeset of all messages."""
    lines = [line for file in path.rglob("*.jsonl") for line in file.read_text().splitlines()]
    return sorted((message["id"], message["changeset"]) for message in map(json.loads, lines))


def test_two_processes_share_a_reindex(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> None:
    """Listed here, one task here and one there at the same time, ended here; deliveries go on behind it."""
    monkeypatch.setenv("STATE_PASSWORD", database.password)
    state = {
        "url": f"postgresql://{database.address}",
        "user": database.user,
        "password": "${STATE_PASSWORD}",
    }
    consumer = {"from": "works", "to": {"type": "files", "path": "out"}, "reindex": {"rows": 1}}
    keys = {"state": state, "consumers": {"search": consumer}, "spark": CHILD_SPARK}
    works = Works(tmp_path, project=keys, lane="small")
    with closing(works.project.state), closing(works.folder.open().state) as elsewhere:
        works.load([{"id": 1, "title": "a"}])
        works.load([{"id": 2, "title": "b"}])
        assert works.project.deliver("search").rows.sent == 2
        plan = works.project.reindex_plan("search")
        assert [task.is_done for task in plan.tasks] == [False, False]
        other = start(tmp_path, "reindex", "search", "--task", "1", "--json")
        assert works.project.run_reindex_task("search", 0).rows.sent == 1
        works.load([{"id": 2, "title": "meanwhile"}])
        answer = finish(other)
        assert answer.status == 0, answer.stderr
        assert answer.document["rows"]["sent"] == 1
        assert not (tmp_path / ".esker/state.db").exists()

        result = works.project.reindex("search")
        assert (result.error, result.until, result.rows.sent) == (None, 3, 3)
        assert "gone on with what had begun" in result.notes
        with held(elsewhere, "shop/consumer/search"):
            assert works.project.deliver("search").status == "skipped"
        assert works.project.deliver("search").until == 3
        assert told(tmp_path / "out") == [("1", 1), ("1", 2), ("2", 2), ("2", 2), ("2", 3)]
