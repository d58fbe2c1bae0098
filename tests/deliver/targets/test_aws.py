"""Topics of SNS and queues of SQS as targets, on moto."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from esker.deliver.targets import Message, Refused, Target
from esker.deliver.targets.aws import AwsSender, Entry
from esker.errors import TargetRefused, TargetUnavailable
from esker.project.secrets import FromEnvironment
from tests.deliver.targets.fault_server import Answer, running_fault_server
from tests.deliver.targets.made import message, target_of
from tests.servers.moto import KEY, SECRET

pytestmark = pytest.mark.server


class Account:
    """An account of moto's."""

    def __init__(self, address: str) -> None:
        self.address = address
        way = {
            "endpoint_url": address,
            "region_name": "eu-west-1",
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
        }
        self.sqs, self.sns = boto3.client("sqs", **way), boto3.client("sns", **way)

    def queue(self, *, fifo: bool = False) -> str:
        name = f"works-{uuid4().hex[:8]}"
        attributes = {"FifoQueue": "true"} if fifo else {}
        url: str = self.sqs.create_queue(QueueName=name + ".fifo" * fifo, Attributes=attributes)["QueueUrl"]
        return url

    def topic_into(self, queue: str, *, fifo: bool = False) -> str:
        name = f"works-{uuid4().hex[:8]}"
        attributes = {"FifoTopic": "true"} if fifo else {}
        topic: str = self.sns.create_topic(Name=name + ".fifo" * fifo, Attributes=attributes)["TopicArn"]
        about = self.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        self.sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=about["Attributes"]["QueueArn"],
            Attributes={"RawMessageDelivery": "true"},
        )
        return topic

    def received(self, queue: str) -> list[tuple[dict[str, Any], dict[str, str]]]:
        """Return all messages of a queue, each with its attributes, and take them out."""
        found = []
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
            )
            for each in answer.get("Messages", ()):
                attributes = {
                    name: value["StringValue"] for name, value in each.get("MessageAttributes", {}).items()
                }
                found.append((json.loads(each["Body"]), attributes))
                self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])
            if "Messages" not in answer:
                return found


@pytest.fixture
def account(moto: str) -> Iterator[Account]:
    found = Account(moto)
    yield found
    found.sqs.close()
    found.sns.close()


Open = Callable[..., Target]


@pytest.fixture
def opened(tmp_path: Path, account: Account) -> Open:
    """Make a target; other keys are the connection's."""

    def made(to: dict[str, Any], **connection: Any) -> Target:
        keys = {"access_key": FromEnvironment(KEY), "secret_key": FromEnvironment(SECRET)}
        way = {"type": "aws", "region": "eu-west-1", "endpoint": account.address, "retries": 1, **keys}
        return target_of(tmp_path, {**to, "connection": "amazon"}, amazon={**way, **connection})

    return made


def send(target: Target, *messages: Message) -> list[Refused]:
    with target.open() as sender:
        return sender.send(messages)


@pytest.mark.parametrize("through", ["sqs", "sns"])
def test_changes_arrive_with_their_attributes(account: Account, opened: Open, through: str) -> None:
    """More than fit into one request; filters of subscribers see what changed."""
    queue = account.queue()
    to = {"type": "sqs", "queue": queue}
    if through == "sns":
        to = {"type": "sns", "topic": account.topic_into(queue)}
    messages = [message(str(number), number + 1, "update", title=f"Ä\u0001 {number}") for number in range(23)]
    assert send(opened(to), *messages, message("z", 99, "delete")) == []

    received = {body["id"]: (body, attributes) for body, attributes in account.received(queue)}
    assert len(received) == 24
    assert received["7"][0]["body"] == {"title": "Ä\u0001 7"}
    assert received["7"][1] == {"op": "update", "table": "museum.works", "changeset": "8", "version": "8"}
    assert "body" not in received["z"][0]
    assert received["z"][1]["op"] == "delete"


@pytest.mark.parametrize("through", ["sqs", "sns"])
def test_a_fifo_keeps_the_order_of_a_row_and_takes_a_change_once(
    account: Account, opened: Open, through: str
) -> None:
    """What is delivered again within minutes is not there twice."""
    queue = account.queue(fifo=True)
    to = {"type": "sqs", "queue": queue}
    if through == "sns":
        to = {"type": "sns", "topic": account.topic_into(queue, fifo=True)}
    messages = [
        message(id, version, "update", n=version) for version in range(1, 6) for id in ("a", "b/ü", "c")
    ]
    target = opened(to)
    assert send(target, *messages) == []
    assert send(target, *messages) == []
    received = [body for body, _ in account.received(queue)]
    assert len(received) == 15
    for id in ("a", "b/ü", "c"):
        assert [body["version"] for body in received if body["id"] == id] == [1, 2, 3, 4, 5]


def test_a_change_that_is_too_large_is_refused(account: Account, opened: Open) -> None:
    """The others of its request arrive. Ten large ones are sent in several requests."""
    queue = account.queue()
    messages = [message(str(number), text="x" * 100_000) for number in range(8)]
    messages[3] = message("3", text="x" * 2_000_000)
    refused = send(opened({"type": "sqs", "queue": queue}), *messages)
    assert [each.message.id for each in refused] == ["3"]
    assert sorted(body["id"] for body, _ in account.received(queue)) == ["0", "1", "2", "4", "5", "6", "7"]


def test_what_json_does_not_have_is_refused(account: Account, opened: Open) -> None:
    """The others arrive."""
    queue = account.queue()
    refused = send(opened({"type": "sqs", "queue": queue}), message("a"), message("b", n=float("nan")))
    assert [each.message.id for each in refused] == ["b"]
    assert [body["id"] for body, _ in account.received(queue)] == ["a"]


def test_a_queue_or_topic_that_is_not_there(account: Account, opened: Open) -> None:
    """The delivery ends: no change can help it."""
    with pytest.raises(TargetRefused, match="nowhere") as raised:
        send(opened({"type": "sqs", "queue": f"{account.address}/123456789012/nowhere"}), message("a"))
    assert "may send there" in raised.value.remedy
    with pytest.raises(TargetRefused, match="nowhere"):
        send(opened({"type": "sns", "topic": "arn:aws:sns:eu-west-1:123456789012:nowhere"}), message("a"))


def test_a_service_that_is_ill(account: Account, opened: Open) -> None:
    """It is asked again a bounded number of times, and secrets are not shown."""
    queue = account.queue()
    with running_fault_server() as faults:
        faults.script = lambda asked: Answer(503, b"ill")
        target = opened({"type": "sqs", "queue": queue}, endpoint=faults.address)
        with pytest.raises(TargetUnavailable) as raised:
            send(target, message("a"))
        assert len(faults.asked) == 2
    assert SECRET not in f"{raised.value} {raised.value.reason} {target!r} {target.describe()}"
    nobody = opened({"type": "sqs", "queue": queue}, endpoint="http://127.0.0.1:9")
    with pytest.raises(TargetUnavailable):
        send(nobody, message("a"))


class _Scripted(AwsSender):
    """Says of each request what a test wants: services fail for single messages only when they are ill."""

    def __init__(self, script: list[dict[str, tuple[str, bool]]], *, is_fifo: bool = False) -> None:
        super().__init__("queue", retries=2, is_fifo=is_fifo)
        self.script, self.requests = script, list[list[str]]()

    def _request(self, entries: Sequence[Entry]) -> dict[str, Any]:
        self.requests.append([f"{each.message.id}{each.message.version}" for each in entries])
        failing = self.script.pop(0) if self.script else {}
        return {
            "Failed": [
                {"Id": str(number), "Code": code, "SenderFault": fault, "Message": "no"}
                for number, each in enumerate(entries)
                for code, fault in [failing.get(each.message.id, ("", False))]
                if code
            ]
        }


def test_single_failures_of_a_request_are_sent_again() -> None:
    """Those that may pass; what is wrong with a message itself refuses it."""
    sender = _Scripted([{"a": ("InternalError", False), "b": ("InvalidMessageContents", True)}])
    refused = sender.send([message("a"), message("b"), message("c")])
    assert [(each.message.id, each.reason) for each in refused] == [("b", "InvalidMessageContents: no")]
    assert sender.requests == [["a1", "b1", "c1"], ["a1"]]
    ill = _Scripted([{"a": ("ThrottlingException", True)}] * 9)
    with pytest.raises(TargetUnavailable, match="queue"):
        ill.send([message("a")])
    assert len(ill.requests) == 3


def test_a_newer_change_does_not_pass_one_that_failed() -> None:
    """In a FIFO queue a row is in a request once, and the next request waits for it."""
    sender = _Scripted([{"a": ("InternalError", False)}], is_fifo=True)
    sender.send([message("a", 1), message("b", 1), message("a", 2)])
    assert sender.requests == [["a1", "b1"], ["a1"], ["a2"]]


def test_the_region_is_that_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing need be declared where the AWS environment has keys."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for to in (
        {"type": "sqs", "queue": "https://sqs.eu-north-1.amazonaws.com/123456789012/works"},
        {"type": "sns", "topic": "arn:aws:sns:eu-north-1:123456789012:works"},
    ):
        with target_of(tmp_path, to).open() as sender:
            client = getattr(sender, f"_{to['type']}")
            assert client.meta.region_name == "eu-north-1"


def test_a_role_is_assumed(account: Account, opened: Open) -> None:
    """Its keys are fetched when the first request needs them."""
    queue = account.queue()
    role = "arn:aws:iam::123456789012:role/sender"
    with running_fault_server(account.address) as faults:
        target = opened(
            {"type": "sqs", "queue": queue},
            endpoint=faults.address,
            access_key=None,
            secret_key=None,
            role=role,
            external_id="esker",
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", KEY)
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            assert send(target, message("a")) == []
    assert any(b"AssumeRole" in each.body and b"sender" in each.body for each in faults.asked)
