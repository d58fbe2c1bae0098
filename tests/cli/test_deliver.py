"""`esker deliver`: dead letters are told, and sent again when what was wrong with them is mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esker.errors import TargetUnavailable
from esker.ledger.offsets import stored_offset
from esker.ledger.reindexes import find_plan
from tests.cli.terminal import Terminal
from tests.command import Answer
from tests.deliver.test_reindex import refs
from tests.deliver.told import Told
from tests.load.works import CHANGES, WORKS, Works

pytestmark = pytest.mark.spark

WRONG = 'import esker\n\n@esker.transform\ndef to_work(row):\n    return {"title": row["titel"]}\n'


def test_dead_letters_are_sent_again(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> None:
    """Only with --retry-dead; what fails once more is known, and no news."""
    told = Told(tmp_path, monkeypatch, {"lane": "small"}, transform="transforms/works.py:to_work")
    right = (tmp_path / "transforms/works.py").read_text()
    told.works.folder.write("transforms/works.py", WRONG)
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    failed = terminal.ask("deliver", "search", "--project", tmp_path)
    assert failed.status == 0, failed.stderr
    assert "search: 2 rows failed, and are dead letters now" in failed.stdout

    known = terminal.ask("deliver", "--retry-dead", "--project", tmp_path, "--json")
    [line] = known.document["consumers"]
    assert (line["rows"]["dead"], line["rows"]["known"], line["dead"]) == (0, 2, 2)

    told.works.folder.write("transforms/works.py", right)
    told.load({"id": 2, "title": "newer"})
    [line] = terminal.ask("deliver", "search", "--project", tmp_path, "--json").document["consumers"]
    assert (line["rows"]["sent"], line["dead"]) == (1, 1)
    assert told.titles() == {"2": "newer"}

    [line] = terminal.ask("deliver", "--retry-dead", "--project", tmp_path, "--json").document["consumers"]
    assert (line["rows"]["sent"], line["rows"]["resolved"], line["dead"]) == (1, 1, 0)
    assert told.titles() == {"1": "a", "2": "newer"}


def test_a_consumer_that_is_not_declared_any_more_is_let_go(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> None:
    """Its offset and its tags go, also those of a reindex; other consumers keep theirs."""

    def forget(*options: str, json: bool = True) -> Answer:
        how = ["--json"] if json else []
        return terminal.ask("deliver", "--forget", *options, "--project", tmp_path, *how)

    told = Told(tmp_path, monkeypatch, {"lane": "small"})
    consumers = told.works.folder.document["consumers"]
    consumers["search_2"] = {**consumers["search"]}
    told.change()
    told.load({"id": 1, "title": "a"})
    told.works.project.deliver_all()
    told.works.project.reindex_plan("search", into="second")
    declared = forget("search")
    assert (declared.status, declared.error["code"]) == (2, "ESK-DELIVER-047")
    assert forget("search", "--retry-dead").status == 2

    del consumers["search"]
    told.works.folder.save()
    told.works.project = told.works.folder.open()
    tables = ["shop.works", "shop.works__changes"]
    assert forget("search").document == {"consumer": "search", "had_offset": True, "tables": tables}
    assert refs(told, WORKS) == {"main"}
    assert refs(told, CHANGES) == {"main", "esker-consumer-shop-search_2"}
    state = told.works.project.state
    assert (stored_offset(state, "shop", "search"), find_plan(state, "shop", "search")) == (None, None)
    assert stored_offset(state, "shop", "search_2") is not None
    assert "nothing was kept for it" in forget("search", json=False).stdout

    # Also where its pipeline was taken out, too.
    document = told.works.folder.document
    del consumers["search_2"]
    document["pipelines"] = {"others": {**document["pipelines"]["works"], "table": "shop.others"}}
    told.works.folder.save()
    assert "search_2: forgotten" in forget("search_2", "--table", "shop.works", json=False).stdout
    assert refs(told, CHANGES) == {"main"}


def test_a_consumer_that_was_never_told_anything_is_let_go(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> None:
    """The log keeps all changes for its first delivery, which failed, and need not any more."""
    told = Told(tmp_path, monkeypatch, {"lane": "small"})
    told.load({"id": 1, "title": "a"})
    told.shelf.path.with_name("down").touch()
    with pytest.raises(TargetUnavailable):
        told.deliver()
    assert refs(told, CHANGES) == {"main", "esker-start-shop-search"}
    del told.works.folder.document["consumers"]["search"]
    told.works.folder.save()
    answer = terminal.ask("deliver", "--forget", "search", "--project", tmp_path, "--json")
    expected = {"consumer": "search", "had_offset": False, "tables": ["shop.works__changes"]}
    assert answer.document == expected
    assert refs(told, CHANGES) == {"main"}


def test_consumers_that_cannot_be_told(terminal: Terminal, tmp_path: Path, spark_running: None) -> None:
    """Each is told why and what to do, with a status of its own; nothing is lost, and the others are told."""

    def consumer(transform: str | None = None, **to: str) -> dict[str, Any]:
        target = to or {"type": "files", "path": "out"}
        return {"from": "works", "to": target} | ({"transform": transform} if transform else {})

    consumers = {
        "down": consumer(type="opensearch", connection="search", index="works"),
        "lost": consumer("transforms/nowhere.py:to_work"),
        "plain": consumer("transforms/works.py:plain"),
        "good": consumer(),
    }
    search = {"type": "opensearch", "hosts": ["http://127.0.0.1:9"], "retries": 0}
    works = Works(tmp_path, project={"connections": {"search": search}, "consumers": consumers}, lane="small")
    works.folder.write("transforms/works.py", "def plain(row):\n    return row\n")
    works.load([{"id": 1, "title": "a"}])
    told = {
        "down": (4, "ESK-DELIVER-001", "http://127.0.0.1:9", "nothing is lost"),
        "lost": (2, "ESK-DELIVER-042", "There is no file transforms/nowhere.py.", "@esker.transform"),
        "plain": (2, "ESK-DELIVER-042", "plain is not marked with @esker.transform.", "@esker.transform"),
    }
    for name, (status, code, why, remedy) in told.items():
        answer = terminal.ask("deliver", name, "--project", tmp_path)
        assert (name, answer.status) == (name, status)
        assert code in answer.stderr
        assert why in answer.stderr
        assert remedy in answer.stderr
    everybody = terminal.ask("deliver", "--project", tmp_path, "--json")
    assert everybody.status == 1
    assert [(each["consumer"], each["status"]) for each in everybody.document["consumers"]] == [
        ("down", "failed"),
        ("lost", "failed"),
        ("plain", "failed"),
        ("good", "succeeded"),
    ]
    shown = terminal.ask("status", "--project", tmp_path, "--json").document["consumers"]
    assert {each["consumer"]: (each["offset"], each["lag"]) for each in shown} == {
        "down": (None, 1),
        "lost": (None, 1),
        "plain": (None, 1),
        "good": (1, 0),
    }
