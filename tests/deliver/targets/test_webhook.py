"""A webhook as a target: what it is sent, and what its answers mean."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from esker.deliver.targets import Message, Refused, Target
from esker.errors import TargetRefused, TargetUnavailable
from esker.project.secrets import FromEnvironment
from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server
from tests.deliver.targets.made import message, target_of


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with running_fault_server() as found:
        yield found


Open = Callable[..., Target]


@pytest.fixture
def webhook(tmp_path: Path, server: FaultServer) -> Open:
    """Make the target; other keys are the connection's."""

    def made(batch_size: int = 1, **connection: Any) -> Target:
        to = {"type": "webhook", "connection": "hook", "batch_size": batch_size}
        way = {"type": "webhook", "url": f"{server.address}/hooks/a-path-that-is-secret", "retries": 2}
        return target_of(tmp_path, to, hook={**way, **connection})

    return made


def send(target: Target, *messages: Message) -> list[Refused]:
    with target.open() as sender:
        return sender.send(messages)


def test_each_change_is_one_request(server: FaultServer, webhook: Open) -> None:
    """It says which row changed, how, and what the row is now."""
    assert send(webhook(), message("a", 7, "update", title="Ä"), message("b", 8, "delete")) == []
    assert [asked.json for asked in server.asked] == [
        {
            "id": "a",
            "op": "update",
            "version": 7,
            "table": "museum.works",
            "changeset": 7,
            "key": {"id": "a"},
            "body": {"title": "Ä"},
        },
        {
            "id": "b",
            "op": "delete",
            "version": 8,
            "table": "museum.works",
            "changeset": 8,
            "key": {"id": "b"},
        },
    ]
    assert {(asked.method, asked.path) for asked in server.asked} == {
        ("POST", "/hooks/a-path-that-is-secret")
    }


def test_many_changes_in_one_request(server: FaultServer, webhook: Open) -> None:
    """They are a list, in their order."""
    messages = [message(str(number), title="x") for number in range(7)]
    assert send(webhook(batch_size=3), *messages) == []
    assert [[each["id"] for each in asked.json] for asked in server.asked] == [
        ["0", "1", "2"],
        ["3", "4", "5"],
        ["6"],
    ]


def test_the_same_change_has_the_same_key(server: FaultServer, webhook: Open) -> None:
    """A server that remembers keys does the same work once."""
    for _ in range(2):
        send(webhook(), message("a", 1, title="one"), message("a", 2, title="two"))
    keys = [asked.headers["Idempotency-Key"] for asked in server.asked]
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]


def test_the_body_is_signed(server: FaultServer, webhook: Open) -> None:
    """Whoever knows the secret can see that it was not altered."""
    secret = FromEnvironment("opensesame-signature")
    send(webhook(signature={"secret": secret, "header": "X-Signed"}), message("a", title="one"))
    asked = server.asked[0]
    expected = hmac.new(secret.encode(), asked.body, hashlib.sha256).hexdigest()
    assert asked.headers["X-Signed"] == f"sha256={expected}"


def test_headers_and_credentials_go_along(server: FaultServer, webhook: Open) -> None:
    """Plain ones, secret ones, and a token."""
    send(
        webhook(
            headers={"X-Plain": "yes"},
            secret_headers={"X-Key": FromEnvironment("opensesame-header")},
            auth={"type": "bearer", "token": FromEnvironment("opensesame-token")},
        ),
        message("a"),
    )
    headers = server.asked[0].headers
    assert headers["X-Plain"] == "yes"
    assert headers["X-Key"] == "opensesame-header"
    assert headers["Authorization"] == "Bearer opensesame-token"


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_what_may_pass_is_sent_again(server: FaultServer, webhook: Open, status: int) -> None:
    """The same request comes again, and nothing is refused."""
    server.once(Answer(status), Answer(status))
    assert send(webhook(), message("a", title="one")) == []
    assert len(server.asked) == 3
    assert len({asked.headers["Idempotency-Key"] for asked in server.asked}) == 1


def test_a_server_that_wants_to_rest_is_left_alone(server: FaultServer, webhook: Open) -> None:
    """As long as it says."""
    server.once(Answer(429, headers={"Retry-After": "1"}))
    started = time.monotonic()
    assert send(webhook(), message("a")) == []
    assert time.monotonic() - started >= 1


def test_a_server_that_stays_ill_is_unavailable(server: FaultServer, webhook: Open) -> None:
    """After a bounded number of tries; one that wants to rest for hours is not waited for."""
    server.script = lambda asked: Answer(503, b"ill")
    with pytest.raises(TargetUnavailable) as raised:
        send(webhook(), message("a"))
    assert "tried 3 times" in raised.value.reason
    assert "ill" in raised.value.reason
    server.asked.clear()
    server.script = lambda asked: Answer(503, headers={"Retry-After": "7200"})
    with pytest.raises(TargetUnavailable):
        send(webhook(), message("a"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_a_change_that_is_refused_does_not_stop_the_others(
    server: FaultServer, webhook: Open, status: int
) -> None:
    """In a batch, the one is found that the server does not take."""

    def refuse(asked: Asked) -> Answer | None:
        return Answer(status, b"no such year") if b'"bad"' in asked.body else None

    server.script = refuse
    messages = [message(str(number), title="bad" if number == 5 else "good") for number in range(8)]
    refused = send(webhook(batch_size=8), *messages)
    assert [each.message.id for each in refused] == ["5"]
    assert "no such year" in refused[0].reason
    taken = [each["id"] for asked in server.asked if b'"bad"' not in asked.body for each in asked.json]
    assert sorted(taken) == ["0", "1", "2", "3", "4", "6", "7"]


def test_what_json_does_not_have_is_refused(server: FaultServer, webhook: Open) -> None:
    """The others of its batch arrive."""
    refused = send(webhook(batch_size=3), message("a"), message("b", year=float("inf")), message("c"))
    assert [each.message.id for each in refused] == ["b"]
    assert sorted(each["id"] for asked in server.asked for each in asked.json) == ["a", "c"]


@pytest.mark.parametrize("status", [302, 401, 403, 404, 410])
def test_a_wrong_address_or_key_is_no_fault_of_a_change(
    server: FaultServer, webhook: Open, status: int
) -> None:
    """The delivery ends, instead of making a dead letter of each row; nothing secret is shown."""
    token = FromEnvironment("opensesame-refused")
    path = "/hooks/a-path-that-is-secret"
    server.script = lambda asked: Answer(status, f"{path} {token}".encode(), {"Location": "http://b/"})
    target = webhook(auth={"type": "bearer", "token": token})
    with pytest.raises(TargetRefused) as raised:
        send(target, message("a"))
    shown = f"{raised.value} {raised.value.reason} {raised.value.remedy} {target.describe()} {target!r}"
    assert token not in shown
    assert "a-path-that-is-secret" not in f"{raised.value} {raised.value.reason} {target.describe()}"
    assert len(server.asked) == 1


def test_tokens_are_fetched(server: FaultServer, webhook: Open) -> None:
    """Also from a server that is ill for a moment; one that gives none, or refuses, ends the delivery."""
    secret = FromEnvironment("opensesame-client")
    auth = {
        "type": "oauth2_client_credentials",
        "access_token_url": f"{server.address}/token",
        "client_id": "esker",
        "client_secret": secret,
    }
    answers = [Answer(503), Answer(200, b'{"access_token": "opensesame-given"}')]
    server.script = lambda asked: answers.pop(0) if asked.path == "/token" else None
    assert send(webhook(auth=auth), message("a")) == []
    assert server.asked[-1].headers["Authorization"] == "Bearer opensesame-given"

    server.script = lambda asked: Answer(200, b"{}") if asked.path == "/token" else None
    with pytest.raises(TargetUnavailable) as nothing:
        send(webhook(auth=auth), message("a"))
    assert "gives no token" in nothing.value.reason

    server.script = lambda asked: Answer(400, secret.encode()) if asked.path == "/token" else None
    with pytest.raises(TargetRefused) as refused:
        send(webhook(auth=auth), message("a"))
    assert "client_id and client_secret" in refused.value.remedy
    assert secret not in refused.value.reason
