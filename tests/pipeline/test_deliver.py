"""Deliveries as people start them: the command line, several at once, and how they are doing."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from esker.ledger.leases import held
from esker.pipeline.status import consumers_status
from tests.command import CHILD_SPARK, esker, finish, start
from tests.folder import Folder
from tests.load.works import Works

pytestmark = [pytest.mark.spark, pytest.mark.process]


def told(path: Path, **keys: Any) -> Works:
    """A table, and two consumers that write files."""
    consumers = {
        name: {"from": "works", "to": {"type": "files", "path": f"out/{name}"}} for name in ("one", "two")
    }
    return Works(path, project={"consumers": consumers, "spark": CHILD_SPARK}, lane="small", **keys)


def messages(folder: Folder, name: str) -> list[tuple[str, int]]:
    """Return id and changeset of the messages in a consumer's files."""
    lines = [
        json.loads(line)
        for file in (folder.path / "out" / name).rglob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    return sorted((line["id"], line["changeset"]) for line in lines)


def test_consumers_are_independent(tmp_path: Path, spark_running: None) -> None:
    """Each has its own offset; one that is being delivered to is left alone."""
    works = told(tmp_path)
    works.load([{"id": 1, "title": "a"}])
    works.project.deliver("one")
    works.load([{"id": 2, "title": "b"}])
    with held(works.project.state, "shop/consumer/one"):
        report = works.project.deliver_all()
    assert [(each.consumer, each.status) for each in report.consumers] == [
        ("one", "skipped"),
        ("two", "succeeded"),
    ]
    assert report.exit_status == 0
    assert messages(works.folder, "one") == [("1", 1)]
    assert messages(works.folder, "two") == [("1", 1), ("2", 2)]
    lags = {
        each.consumer: (each.offset, each.lag)
        for each in consumers_status(works.project.project, works.project.state)
    }
    assert lags == {"one": (1, 1), "two": (2, 0)}


def test_the_command_line(tmp_path: Path, spark_running: None) -> None:
    """Results as JSON, lag in the status, and an unknown consumer with the nearest name."""
    works = told(tmp_path)
    works.load([{"id": 1, "title": "a"}])
    answer = esker(tmp_path, "deliver", "one", "--json")
    assert answer.status == 0, answer.stderr
    [line] = answer.document["consumers"]
    assert (line["consumer"], line["since"], line["until"], line["rows"]["sent"]) == ("one", 0, 1, 1)
    status = esker(tmp_path, "status", "--json").document["consumers"]
    assert [(each["consumer"], each["status"], each["lag"]) for each in status] == [
        ("one", "succeeded", 0),
        ("two", "never delivered", 1),
    ]
    wrong = esker(tmp_path, "deliver", "tow", "--json")
    assert wrong.status == 2
    assert "two" in wrong.error["remedy"]
    again = esker(tmp_path, "reindex", "one")
    assert again.status == 0, again.stderr
    assert "1 sent" in again.stdout


def test_following_ends_when_it_is_asked_to(tmp_path: Path, spark_running: None) -> None:
    """Changes are delivered as they come; SIGTERM ends it behind what it is at, with status 0."""
    works = told(tmp_path)
    works.load([{"id": 1, "title": "a"}])
    process = start(tmp_path, "deliver", "--follow", "--period", "0.2")
    for number in (1, 2):
        for _ in range(600):
            if (str(number), number) in messages(works.folder, "two"):
                break
            assert process.poll() is None
            time.sleep(0.1)
        if number == 1:
            works.load([{"id": 2, "title": "b"}])
    process.send_signal(signal.SIGTERM)
    answer = finish(process)
    assert answer.status == 0, answer.stderr
    assert "one: changesets 1 to 1, 1 sent, 0 deleted" in answer.stdout
    assert messages(works.folder, "two") == [("1", 1), ("2", 2)]
