"""A topic of Kafka as a target, on a real broker."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from esker.deliver.targets import Message, Refused, Target
from esker.errors import TargetRefused, TargetUnavailable
from esker.project.secrets import FromEnvironment
from tests.deliver.targets.made import message, target_of
from tests.servers.kafka import Kafka

pytestmark = pytest.mark.server

PARTITIONS = 3


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A topic of the test's own."""
    name = f"works-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.server})
    wanted = NewTopic(name, num_partitions=PARTITIONS, config={"max.message.bytes": "100000"})
    admin.create_topics([wanted])[name].result(30)
    return name


Open = Callable[..., Target]


@pytest.fixture
def opened(tmp_path: Path, kafka: Kafka, topic: str) -> Open:
    """Make the target; other keys are the connection's."""

    def made(to: dict[str, Any] | None = None, **connection: Any) -> Target:
        way = {"type": "kafka", "servers": kafka.server, "timeout": "20s", **connection}
        wanted = {"type": "kafka", "connection": "broker", "topic": topic, **(to or {})}
        return target_of(tmp_path, wanted, broker=way)

    return made


def send(target: Target, *messages: Message) -> list[Refused]:
    with target.open() as sender:
        return sender.send(messages)


def received(kafka: Kafka, topic: str) -> list[tuple[str, Any, dict[str, str], int]]:
    """Return all messages of a topic: key, value, headers and partition, each partition in its order."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.server, "group.id": uuid4().hex, "enable.auto.commit": False}
    )
    found = []
    try:
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition, 0)
            _, last = consumer.get_watermark_offsets(place, 30)
            consumer.assign([place])
            for _ in range(last):
                each: Any = consumer.poll(30)
                assert each is not None
                assert each.error() is None
                value = json.loads(each.value()) if each.value() is not None else None
                headers = {name: text.decode() for name, text in each.headers() or ()}
                found.append((each.key().decode(), value, headers, partition))
    finally:
        consumer.close()
    return found


def test_changes_are_messages_with_the_id_as_key(kafka: Kafka, topic: str, opened: Open) -> None:
    """A deleted row is a message without a value, which compaction understands."""
    assert send(opened(), message("a", 7, "update", title="Ä"), message("b", 8, "delete")) == []
    found = {key: (value, headers) for key, value, headers, _ in received(kafka, topic)}
    assert found == {
        "a": ({"title": "Ä"}, {"op": "update", "table": "museum.works", "changeset": "7", "version": "7"}),
        "b": (None, {"op": "delete", "table": "museum.works", "changeset": "8", "version": "8"}),
    }


def test_a_delete_may_be_a_message_that_says_so(kafka: Kafka, topic: str, opened: Open) -> None:
    """For readers who want to know which row it was."""
    assert send(opened({"deletes": "message"}), message("b", 8, "delete")) == []
    [(_, value, _, _)] = received(kafka, topic)
    assert (value["op"], value["key"], value["changeset"]) == ("delete", {"id": "b"}, 8)


def test_a_row_keeps_its_order(kafka: Kafka, topic: str, opened: Open) -> None:
    """All changes of a row are in one partition, one behind the other; rows are spread over all."""
    messages = [
        message(str(row), version, "update", n=version) for version in range(1, 101) for row in range(20)
    ]
    assert send(opened(), *messages) == []
    found = received(kafka, topic)
    assert len(found) == 2_000
    for row in range(20):
        of_row = [(value["n"], partition) for key, value, _, partition in found if key == str(row)]
        assert [version for version, _ in of_row] == list(range(1, 101))
        assert len({partition for _, partition in of_row}) == 1
    assert {partition for *_, partition in found} == {0, 1, 2}


def test_a_change_that_is_too_large_is_refused(kafka: Kafka, topic: str, opened: Open) -> None:
    """By the broker, or by the client already; the others arrive."""
    noise = random.Random(7)
    large = "".join(chr(noise.randrange(32, 20_000)) for _ in range(120_000))
    bad = [message("broker", text=large), message("client", text=large * 20), message("n", x=float("nan"))]
    refused = send(opened(), message("a"), *bad, message("c"))
    assert sorted(each.message.id for each in refused) == ["broker", "client", "n"]
    assert sorted(key for key, *_ in received(kafka, topic)) == ["a", "c"]


def test_small_changes_that_are_too_large_together(kafka: Kafka, topic: str, opened: Open) -> None:
    """Brokers measure what travels together. All arrive, and the newest of a row is the last."""
    noise = random.Random(7)
    messages = [
        message(str(row), version, "update", n=version, text=noise.randbytes(4_000).hex())
        for version in range(1, 21)
        for row in range(5)
    ]
    assert send(opened(), *messages) == []
    found = received(kafka, topic)
    for row in range(5):
        versions = [value["n"] for key, value, _, _ in found if key == str(row)]
        assert versions[-20:] == list(range(1, 21))


def test_a_topic_that_is_not_there(opened: Open) -> None:
    """It is not made, and the error says what to do."""
    with pytest.raises(TargetRefused, match="nowhere") as raised:
        opened({"topic": "nowhere"}).open()
    assert "Make the topic" in raised.value.remedy


def test_user_and_password(kafka: Kafka, topic: str, opened: Open) -> None:
    """The right ones open the door, wrong ones do not, and are not shown."""
    keys = {"servers": [kafka.guarded], "user": kafka.user, "mechanism": "PLAIN"}
    assert send(opened(password=FromEnvironment(kafka.password), **keys), message("a", n=1)) == []
    assert [key for key, *_ in received(kafka, topic)] == ["a"]
    wrong = FromEnvironment("opensesame-wrong")
    target = opened(password=wrong, **keys, timeout="5s")
    with pytest.raises(TargetRefused) as raised:
        target.open()
    assert "user and password" in raised.value.remedy
    assert wrong not in f"{raised.value} {raised.value.reason} {target!r} {target.describe()}"


def test_nobody_answers(opened: Open) -> None:
    """A broker that is not there is unavailable, without waiting for ever."""
    with pytest.raises(TargetUnavailable, match=r"127\.0\.0\.1:9"):
        opened(servers=["127.0.0.1:9"], timeout="2s").open()
