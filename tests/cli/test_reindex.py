"""`esker reindex` as people and orchestrators call it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.command import Answer
from tests.deliver.test_reindex import refs
from tests.deliver.told import Told
from tests.load.works import CHANGES, WORKS, Works

pytestmark = pytest.mark.spark

Ask = Callable[..., Answer]

MEETING = '''
import pathlib
import time

HERE = pathlib.Path(__file__).parent


def meet(messages):
    """Arrive, and wait until somebody else is here, too."""
    HERE.joinpath(messages[0].id).touch()
    for _ in range(200):
        if len(list(HERE.glob("[0-9]*"))) == 2:
            return
        time.sleep(0.1)
    raise RuntimeError("nobody else came")
'''


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None) -> Told:
    """Two files of ten rows, and a shelf that is told of them."""
    told = Told(tmp_path, monkeypatch, {"lane": "small"}, reindex={"rows": 10})
    for number in range(2):
        told.load(*({"id": number * 10 + place, "title": f"{number}"} for place in range(10)))
    return told


@pytest.fixture
def ask(terminal: Terminal, tmp_path: Path) -> Ask:
    """Ask for something to be done with consumer `search`."""

    def asked(*options: str, json: bool = True) -> Answer:
        return terminal.ask(
            "reindex", "search", *options, "--project", tmp_path, *(["--json"] if json else [])
        )

    return asked


def test_a_reindex_that_nobody_goes_on_with_is_given_up(told: Told, ask: Ask) -> None:
    """It keeps no snapshot any more, and names the index that it leaves; deliveries go on as before."""
    early = ask("--give-up")
    assert (early.status, early.error["code"]) == (2, "ESK-DELIVER-045")
    told.deliver()
    listed = ask("--list-tasks", "--into", "second").document
    assert ask("--task", "0").status == 0
    assert "esker-reindex-shop-search" in refs(told, WORKS) & refs(told, CHANGES)
    assert ask("--give-up", "--anew").status == 2
    given_up = ask("--give-up").document
    assert given_up == {"consumer": "search", "snapshot_id": listed["snapshot_id"], "into": "second"}
    assert refs(told, WORKS) == {"main"}
    assert refs(told, CHANGES) == {"main", "esker-consumer-shop-search"}
    assert ask("--task", "1").status == 2
    told.load({"id": 0, "title": "new"})
    assert (told.deliver().rows.sent, told.titles()["0"]) == (1, "new")
    ask("--list-tasks", "--into", "third")
    shown = ask("--give-up", json=False)
    assert "search: index third is left as it is" in shown.stdout


def test_an_orchestrator_has_tasks_done(told: Told, ask: Ask) -> None:
    """They are listed, done in any order, each at a pace of its own, and ended by one more call."""
    early = ask("--task", "0")
    assert (early.status, early.error["code"]) == (2, "ESK-DELIVER-045")
    assert "--list-tasks" in early.error["remedy"]
    assert "The state database is a file" in early.error["reason"]

    listed = ask("--list-tasks").document
    assert [(task["task"], task["rows"], task["done"]) for task in listed["tasks"]] == [
        (0, 10, False),
        (1, 10, False),
    ]
    begun = time.monotonic()
    assert ask("--task", "1", "--rate", "5").document["rows"]["sent"] == 10
    assert time.monotonic() - begun >= 1
    shown = ask("--list-tasks", json=False)
    assert "then: esker reindex search" in shown.stdout
    assert [task["done"] for task in ask("--list-tasks").document["tasks"]] == [False, True]
    assert told.shelf.alias == "first"

    wrong = ask("--task", "2")
    assert (wrong.status, wrong.error["remedy"]) == (2, "Tasks are numbered from 0 to 1.")
    assert ask("--task", "0", json=False).stdout.startswith("search: succeeded: 10 sent")
    ended = ask()
    assert (ended.status, ended.document["rows"]["sent"]) == (0, 20)
    assert "gone on with what had begun" in ended.document["notes"]
    assert told.shelf.alias == listed["into"]
    assert len(told.shelf.sent()) == 20


def test_an_index_of_another_name_and_another_begin(told: Told, ask: Ask) -> None:
    """Where an index is not as it must be, the alias stays; what has begun is given up when it is said."""
    told.shelf.make("second")
    with told.shelf.connected() as connection:
        connection.execute("insert into documents values ('second', 'x', 1, '{}')")
    bad = ask("--into", "second")
    assert (bad.status, bad.error["code"]) == (1, "ESK-DELIVER-044")
    other = ask("--into", "third", json=False)
    assert other.status == 2
    assert "begin anew with --anew" in other.stderr
    assert told.shelf.alias == "first"
    anew = ask("--into", "third", "--anew", json=False)
    assert anew.status == 0, anew.stderr
    assert "search: index third" in anew.stdout
    assert told.shelf.alias == "third"
    assert len(told.shelf.documents()) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--list-tasks", "--task", "1"], "write one of --list-tasks, --task, --ids and --give-up"),
        (["--ids", "x", "--into", "b"], "--into means nothing with --ids"),
        (["--task", "1", "--anew"], "--anew means nothing with --task"),
        (["--list-tasks", "--rate", "5"], "--rate means nothing with --list-tasks"),
        (["--parallel", "0"], "Invalid value for '--parallel'"),
    ],
)
def test_options_that_do_not_go_together(ask: Ask, options: list[str], message: str) -> None:
    """Whoever writes one expects that it counts."""
    answer = ask(*options)
    assert answer.status == 2
    assert message in answer.error["message"]


def test_tasks_at_a_time(ask: Ask, tmp_path: Path, spark_running: None) -> None:
    """--parallel counts, whatever the project says: each task waits for the other one here."""
    consumer = {
        "from": "works",
        "to": {"type": "python", "function": "meeting.py:meet"},
        "reindex": {"rows": 1, "parallel": 1},
    }
    works = Works(tmp_path, project={"consumers": {"search": consumer}}, lane="small")
    works.folder.write("meeting.py", MEETING)
    for number in range(2):
        works.load([{"id": number, "title": "a"}])
    done = ask("--parallel", "2")
    assert (done.status, done.document["rows"]["sent"]) == (0, 2), done.stdout


def test_some_ids(told: Told, ask: Ask, tmp_path: Path) -> None:
    """As they stand in the table, however they are written; no id is not all of them."""
    told.deliver()
    with told.shelf.connected() as connection:
        connection.execute("update documents set body = '{}' where id in ('1', '7')")
        connection.execute("insert into documents values ('first', '70', 1, '{}')")
    ids = told.works.folder.write("ids", "1\n\n007\n70\n")
    done = ask("--ids", str(ids)).document
    assert (done["rows"]["sent"], done["rows"]["deleted"]) == (2, 1)
    assert told.titles() == {str(number): str(number // 10) for number in range(20)}
    sent = len(told.shelf.sent())
    for text, why in (("", "names no id"), ("3\nseven\n", '"seven": column "id" is of type bigint')):
        ids.write_text(text)
        refused = ask("--ids", str(ids))
        assert (refused.status, refused.error["code"]) == (2, "ESK-DELIVER-045")
        assert why in refused.error["reason"]
    nowhere = ask("--ids", str(tmp_path / "nowhere"), json=False)
    assert nowhere.status == 2
    assert "cannot be read" in nowhere.stderr
    assert told.works.project.reindex("search", ids=[]).rows.rows == 0
    assert len(told.shelf.sent()) == sent


def test_ids_of_two_columns(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> None:
    """They are JSON lists; the line in which there is none is named, and nothing is sent."""
    told = Told(tmp_path, monkeypatch, {"lane": "small", "key": ["country", "number"]})
    rows: list[dict[str, Any]] = [
        {"country": country, "number": number, "title": f"{country} {number}"}
        for country in ("NL", "DE")
        for number in range(3)
    ]
    told.load(*rows)
    told.load({"country": "BE", "number": 0, "title": "BE 0"})
    told.deliver()
    with told.shelf.connected() as connection:
        connection.execute("update documents set body = '{}'")
    ids = told.works.folder.write("ids", '["NL", "1"]\n["DE", 2]\n["DE","9"]\n')
    done = ask("--ids", str(ids)).document
    assert (done["rows"]["sent"], done["rows"]["deleted"]) == (2, 1)
    found = {id_: body["title"] for id_, body in told.shelf.documents().items() if body}
    assert found == {'["NL","1"]': "NL 1", '["DE","2"]': "DE 2"}
    sent = len(told.shelf.sent())
    for line in ("NL,1", '["NL"]', '["NL", null]', '{"country": "NL"}', "7"):
        ids.write_text(f'["NL", "1"]\n\n{line}\n')
        refused = ask("--ids", str(ids))
        assert (refused.status, refused.error["code"]) == (2, "ESK-DELIVER-045")
        assert refused.error["reason"].startswith(f'line 3 of "{ids}": "{line}" is no JSON list of 2 texts')
        assert "country, number" in refused.error["remedy"]
    assert len(told.shelf.sent()) == sent
