"""A table told to targets without versions: every change of a row arrives, in its order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from esker.errors import TargetUnavailable
from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server
from tests.deliver.targets.test_kafka import PARTITIONS, received
from tests.load.works import Works
from tests.servers.kafka import Kafka

pytestmark = [pytest.mark.spark, pytest.mark.server]

lanes = pytest.mark.parametrize("spark", [10_000, 0], ids=["this process", "by Spark"])


def told(path: Path, spark: int, connection: dict[str, Any], **to: Any) -> Works:
    """A table, and a consumer with a connection of its own."""
    consumer = {
        "from": "works",
        "to": {"type": connection["type"], "connection": "away", **to},
        "batch": {"spark": spark},
    }
    project = {"connections": {"away": connection}, "consumers": {"news": consumer}}
    return Works(path, project=project, lane="small", delete_when="title = 'gone'")


def work(number: int, title: str) -> dict[str, Any]:
    return {"id": number, "title": title}


@lanes
def test_a_topic(tmp_path: Path, kafka: Kafka, spark: int, spark_running: None) -> None:
    """Changes of a row are in one partition, the first one first; a broker that is away costs nothing."""
    topic = f"works-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.server})
    admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])[topic].result(30)
    connection = {"type": "kafka", "servers": ["127.0.0.1:9"], "timeout": "2s"}
    works = told(tmp_path, spark, connection, topic=topic)
    works.load([work(number, "a") for number in range(6)])
    with pytest.raises(TargetUnavailable):
        works.project.deliver("news")
    works.folder.document["connections"]["away"] |= {"servers": [kafka.server], "timeout": "20s"}
    works.folder.save()
    works.project = works.folder.open()
    works.load([work(1, "b"), work(2, "gone")])
    works.load([work(1, "c")])
    result = works.project.deliver("news")
    assert (result.since, result.until, result.rows.sent, result.rows.deleted) == (0, 3, 8, 1)
    assert works.project.reindex("news").rows.sent == 5
    messages: dict[str, list[tuple[Any, str]]] = {}
    places: dict[str, set[int]] = {}
    for key, value, headers, partition in received(kafka, topic):
        messages.setdefault(key, []).append((value and value["title"], headers["changeset"]))
        places.setdefault(key, set()).add(partition)
    assert messages == {
        **{str(number): [("a", "1"), ("a", "3")] for number in (0, 3, 4, 5)},
        "1": [("a", "1"), ("b", "2"), ("c", "3"), ("c", "3")],
        "2": [("a", "1"), (None, "2")],
    }
    assert all(len(partitions) == 1 for partitions in places.values())


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with running_fault_server() as found:
        yield found


def _refuse_bad(asked: Asked) -> Answer | None:
    return Answer(422, b"no such title") if b'"bad"' in asked.body else None


@lanes
def test_a_webhook(tmp_path: Path, server: FaultServer, spark: int, spark_running: None) -> None:
    """Behind a change that is refused, later ones of its row wait; all others arrive, in their order."""
    connection = {"type": "webhook", "url": f"{server.address}/hook", "retries": 0}
    works = told(tmp_path, spark, connection, batch_size=2)

    def arrived() -> list[tuple[str, Any]]:
        """Return id and title of what the server took since the last look."""
        taken = [
            asked for asked in server.asked if _refuse_bad(asked) is None or server.script is not _refuse_bad
        ]
        server.asked.clear()
        return [(each["id"], each.get("body", {}).get("title")) for asked in taken for each in asked.json]

    server.script = lambda asked: Answer(503)
    works.load([work(1, "a"), work(2, "bad"), work(3, "c")])
    with pytest.raises(TargetUnavailable):
        works.project.deliver("news")
    server.asked.clear()
    server.script = _refuse_bad
    works.load([work(1, "b"), work(2, "good"), work(3, "gone")])
    result = works.project.deliver("news")
    assert (result.since, result.until, result.rows.dead, result.dead) == (0, 2, 1, 1)
    news = arrived()
    assert sorted(news, key=lambda each: each[0]) == [("1", "a"), ("1", "b"), ("3", "c"), ("3", None)]
    # The letter of the row has the change that waits behind the refused one, and the reason of that.
    letters = works.read("lake.shop.news__dead")
    known = sorted((each["changeset"], each["id"], json.loads(each["payload"])["title"]) for each in letters)
    assert known == [(1, "2", "bad"), (2, "2", "good")]
    assert all(each["stage"] == "target" and "no such title" in each["error"] for each in letters)

    result = works.project.deliver("news", retry_dead=True)
    assert (result.rows.resolved, result.dead) == (1, 0)
    assert arrived() == [("2", "good")]
    assert works.project.reindex("news").rows.sent == 2
    assert sorted(arrived()) == [("1", "b"), ("2", "good")]
