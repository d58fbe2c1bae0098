"""A search index as a target: versions, refusals, and an alias that is switched."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from esker.deliver.targets import Index, Message, Refused
from esker.errors import IndexGone, IndexNotSwitchable, TargetRefused, TargetUnavailable
from esker.project.secrets import FromEnvironment
from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server
from tests.deliver.targets.made import message, target_of
from tests.servers.search import SearchServer

pytestmark = pytest.mark.server

MAPPINGS = {
    "dynamic": "strict",
    "properties": {"title": {"type": "keyword"}, "year": {"type": "long"}},
}


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request: pytest.FixtureRequest) -> SearchServer:
    """Each of the search servers."""
    found: SearchServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def alias() -> str:
    """A name that no other test uses."""
    return f"works-{uuid4().hex[:8]}"


@pytest.fixture
def faults(server: SearchServer) -> Iterator[FaultServer]:
    """A server before the search server, which a test can let fail."""
    with running_fault_server(server.address) as found:
        yield found


Open = Callable[..., Index]


@pytest.fixture
def index(tmp_path: Path, server: SearchServer, alias: str) -> Open:
    """Make the target, at the server itself or at other hosts; other keys are the connection's."""

    def made(*hosts: str, to: dict[str, Any] | None = None, **connection: Any) -> Index:
        wanted = {"type": server.type, "connection": "search", "index": alias, "mappings": MAPPINGS}
        way = {"type": server.type, "hosts": list(hosts) or [server.address], "retries": 3, **connection}
        found = target_of(tmp_path, {**wanted, **(to or {})}, search=way)
        assert isinstance(found, Index)
        return found

    return made


def send(index: Index, *messages: Message) -> list[Refused]:
    index.begin()
    with index.open() as sender:
        return sender.send(messages)


def test_the_first_delivery_makes_an_index_behind_the_alias(
    server: SearchServer, index: Open, alias: str
) -> None:
    """Documents are found under the alias, with the declared mappings."""
    assert send(index(), message("a", title="Ada", year=1843), message("b", title="Bob")) == []

    assert server.documents(alias) == {"a": {"title": "Ada", "year": 1843}, "b": {"title": "Bob"}}
    assert server.behind(alias) == [f"{alias}-000001"]
    mappings = server.ask("GET", f"/{alias}-000001/_mapping")[f"{alias}-000001"]["mappings"]
    assert mappings == MAPPINGS


def test_an_older_version_never_replaces_a_newer_one(server: SearchServer, index: Open, alias: str) -> None:
    """Whatever arrives late or twice has arrived, and changes nothing."""
    works = index()
    newer, older = message("a", 7, "update", title="new"), message("a", 5, "update", title="old")
    assert send(works, newer) == []
    assert send(works, older) == []
    assert send(works, newer, older, newer) == []

    assert server.documents(alias) == {"a": {"title": "new"}}
    assert server.version(alias, "a") == 7


def test_deletes_have_versions_too(server: SearchServer, index: Open, alias: str) -> None:
    """A deleted document stays deleted until a newer version comes; one that was never there is no error."""
    works = index()
    assert send(works, message("a", 3, title="one"), message("a", 4, "delete")) == []
    assert send(works, message("a", 3, title="one"), message("never", 4, "delete")) == []
    assert server.documents(alias) == {}
    assert send(works, message("a", 2, "delete"), message("a", 5, "undelete", title="two")) == []
    assert send(works, message("a", 4, "delete")) == []
    assert server.documents(alias) == {"a": {"title": "two"}}
    # Longer than the minute for which servers remember by themselves.
    settings = server.ask("GET", f"/{alias}/_settings")[f"{alias}-000001"]["settings"]
    assert settings["index"]["gc_deletes"] == "1h"


def test_one_malformed_document_of_ten_thousand(server: SearchServer, index: Open, alias: str) -> None:
    """All others arrive, and the one that is refused is named with the reason."""
    messages = [message(str(number), title=f"work {number}", year=number) for number in range(10_000)]
    messages[4_711] = message("4711", title="work 4711", year="MCMXC")
    refused = send(index(), *messages)

    assert [each.message.id for each in refused] == ["4711"]
    assert "year" in refused[0].reason
    assert index().count() == 9_999


def test_what_cannot_be_sent_is_refused(server: SearchServer, index: Open, alias: str) -> None:
    """An id that is too long or empty would break the whole request, as would what JSON does not have."""
    works = index()
    bad = [message("x" * 513, title="long"), message("", title="empty"), message("n", year=float("nan"))]
    refused = send(works, message("a", title="one"), *bad, message("b", title="two"))
    assert [each.message for each in refused] == bad
    assert sorted(server.documents(alias)) == ["a", "b"]


def test_a_notification_is_a_document_of_its_key(server: SearchServer, index: Open, alias: str) -> None:
    """Without a body there is still a document that tells of the change."""
    notified = Message("a", 7, "update", "museum.works", 7, {"id": "a"}, None)
    assert send(index(to={"mappings": {}}), notified) == []
    assert server.documents(alias)["a"]["changeset"] == 7


def throttled(faults: FaultServer, id: str, times: int, status: int) -> Callable[[Asked], Answer | None]:
    """Take one document out of bulk requests so often, and say that the server was too busy for it."""
    left = [times]

    def script(asked: Asked) -> Answer | None:
        lines = asked.body.splitlines(keepends=True)
        held = [n for n, line in enumerate(lines) if f'"_id":"{id}"'.encode() in line]
        if "_bulk" not in asked.path or not held or not left[0]:
            return None
        left[0] -= 1
        kept = [line for n, line in enumerate(lines) if n not in (held[0], held[0] + 1)]
        passed = Asked(asked.method, asked.path, asked.headers, b"".join(kept))
        answer: dict[str, Any] = {"errors": True, "items": []}
        if kept:
            answer = json.loads(faults.forward(passed).body)
        busy = {"status": status, "error": {"type": "busy", "reason": "too many requests"}}
        answer["items"].insert(held[0] // 2, {"index": busy})
        return Answer(200, json.dumps(answer | {"errors": True}).encode())

    return script


@pytest.mark.parametrize("status", [429, 503])
def test_a_document_that_met_a_busy_shard_is_sent_again(
    server: SearchServer, faults: FaultServer, index: Open, alias: str, status: int
) -> None:
    """Only that one, and none is lost or refused."""
    faults.script = throttled(faults, "b", 2, status)
    messages = [message(id, title=id.upper()) for id in "abc"]
    assert send(index(faults.address), *messages) == []
    assert server.documents(alias) == {id: {"title": id.upper()} for id in "abc"}
    bulks = [asked.body.count(b'"_id"') for asked in faults.asked if "_bulk" in asked.path]
    assert bulks == [3, 1, 1]


def test_a_server_that_stays_busy_is_unavailable(
    server: SearchServer, faults: FaultServer, index: Open, alias: str
) -> None:
    """After a bounded number of tries the delivery ends; the same messages can be sent again."""
    faults.script = throttled(faults, "b", 99, 429)
    messages = [message(id, title=id) for id in "abc"]
    with pytest.raises(TargetUnavailable, match="does not take") as raised:
        send(index(faults.address, retries=2), *messages)
    assert "too many requests" in raised.value.reason
    assert send(index(), *messages) == []
    assert sorted(server.documents(alias)) == ["a", "b", "c"]


@pytest.mark.parametrize("status", [0, 429, 502, 503])
def test_a_request_that_failed_is_repeated(
    server: SearchServer, faults: FaultServer, index: Open, alias: str, status: int
) -> None:
    """Also when the server has done what it was asked, and only its answer was lost."""
    works = index(faults.address)
    send(works)
    lost = [2]

    def lose(asked: Asked) -> Answer | None:
        if "_bulk" not in asked.path or not lost[0]:
            return None
        lost[0] -= 1
        faults.forward(asked)
        return Answer(status)

    faults.script = lose
    assert send(works, message("a", 3, title="one"), message("b", 3, "delete")) == []
    assert server.documents(alias) == {"a": {"title": "one"}}


def test_the_next_host_is_asked_when_one_is_silent(
    server: SearchServer, faults: FaultServer, index: Open, alias: str
) -> None:
    """A node of the cluster may be down."""
    faults.script = lambda asked: Answer(0)
    assert send(index(faults.address, server.address), message("a", title="one")) == []
    assert server.documents(alias) == {"a": {"title": "one"}}


def test_a_request_that_is_too_large_is_sent_in_parts(
    server: SearchServer, faults: FaultServer, index: Open, alias: str
) -> None:
    """A document that is too large by itself is refused, and the others arrive."""
    faults.script = lambda asked: Answer(413) if len(asked.body) > 1_000 else None
    messages = [message(str(number), title="t" * 100) for number in range(20)]
    messages[13] = message("13", title="t" * 2_000)
    refused = send(index(faults.address), *messages)
    assert [each.message.id for each in refused] == ["13"]
    assert len(server.documents(alias)) == 19


def test_requests_are_bounded(server: SearchServer, faults: FaultServer, index: Open) -> None:
    """No request has more than some megabytes, and what is sent is packed."""
    messages = [message(str(number), title="t" * 30_000) for number in range(400)]
    assert send(index(faults.address), *messages) == []
    bulks = [asked for asked in faults.asked if "_bulk" in asked.path]
    assert len(bulks) == 3
    assert all(len(asked.body) <= 5_000_000 for asked in bulks)
    assert all(asked.headers["Content-Encoding"] == "gzip" for asked in bulks)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_end_the_delivery(faults: FaultServer, index: Open, status: int) -> None:
    """They are no fault of any document, and are not shown."""
    password = FromEnvironment("opensesame-search")
    faults.script = lambda asked: Answer(status, f"who is {password}?".encode())
    with pytest.raises(TargetRefused) as raised:
        send(index(faults.address, user="esker", password=password), message("a"))
    assert "user, password or api_key" in raised.value.remedy
    assert password not in f"{raised.value} {raised.value.reason}"
    assert faults.asked[0].headers["Authorization"].startswith("Basic ")


def test_an_api_key_is_sent(faults: FaultServer, index: Open) -> None:
    """As the servers want it."""
    send(index(faults.address, api_key=FromEnvironment("opensesame-key")), message("a", title="x"))
    assert {asked.headers["Authorization"] for asked in faults.asked} == {"ApiKey opensesame-key"}


def test_an_alias_that_vanished_is_not_replaced_by_an_index(
    server: SearchServer, index: Open, alias: str
) -> None:
    """Search servers make any index that is written to; then no reindex could be switched to any more."""
    index().begin()
    with index().open() as sender:
        server.ask("DELETE", f"/{alias}-000001")
        with pytest.raises(IndexGone, match=alias):
            sender.send([message("a", title="one")])
    with pytest.raises(IndexGone, match=alias):
        index().open()
    assert server.ask("HEAD", f"/{alias}") is None


def test_many_tasks_begin_at_the_same_time(server: SearchServer, index: Open, alias: str) -> None:
    """They make one index, and all write to it."""
    failures: list[BaseException] = []

    def deliver(number: int) -> None:
        try:
            send(index(), message(str(number), title="one"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=deliver, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(server.documents(alias)) == 6
    assert server.behind(alias) == [f"{alias}-000001"]


def test_a_new_index_is_filled_beside_and_switched_to(server: SearchServer, index: Open, alias: str) -> None:
    """The alias leads to the old one until it is switched, and then to the new one alone."""
    works, name = index(), f"{alias}-new"
    send(works, message("a", 1, title="old"), message("b", 1, title="old"))
    works.make(name)
    works.make(name)
    fresh = works.into(name)
    assert send(fresh, message("a", 2, title="new")) == []

    assert (works.count(), fresh.count()) == (2, 1)
    assert works.switch(name) == f"{alias}-000001"
    assert server.behind(alias) == [name]
    assert server.documents(alias) == {"a": {"title": "new"}}
    assert works.count() == 1
    assert works.switch(name) is None
    # What is delivered now goes to the new one.
    assert send(works, message("c", 3, title="next")) == []
    assert sorted(server.documents(name)) == ["a", "c"]


def test_a_new_index_is_like_the_present_one(server: SearchServer, index: Open, alias: str) -> None:
    """What somebody else has set there is not lost by a reindex; what is declared goes before."""
    settings = {"index": {"number_of_shards": 2, "refresh_interval": "7s"}}
    mappings = {"properties": {"title": {"type": "keyword"}}}
    body = {"settings": settings, "mappings": mappings, "aliases": {alias: {}}}
    server.ask("PUT", f"/{alias}-theirs", body)
    index(to={"mappings": {}}).make(f"{alias}-like")
    index(to={"settings": {"number_of_shards": 1}}).make(f"{alias}-declared")

    like = server.ask("GET", f"/{alias}-like")[f"{alias}-like"]
    assert like["mappings"] == mappings
    assert like["settings"]["index"]["number_of_shards"] == "2"
    assert like["settings"]["index"]["refresh_interval"] == "7s"
    declared = server.ask("GET", f"/{alias}-declared")[f"{alias}-declared"]
    assert declared["mappings"] == MAPPINGS
    assert declared["settings"]["index"]["number_of_shards"] == "1"


def test_a_search_finds_something_at_every_moment_of_a_switch(
    server: SearchServer, index: Open, alias: str
) -> None:
    """The alias leads somewhere at all times, and never to two indices."""
    works = index()
    send(works, message("a", 1, title="one"))
    for number in range(2, 8):
        works.make(f"{alias}-{number}")
        send(works.into(f"{alias}-{number}"), message("a", number, title="one"))
    works.count()
    for number in range(2, 8):
        assert works.into(f"{alias}-{number}").count() == 1
    seen: list[int | None] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            found = server.ask("GET", f"/{alias}/_count")
            seen.append(found["count"] if found else None)

    thread = threading.Thread(target=search)
    thread.start()
    for number in range(2, 8):
        works.switch(f"{alias}-{number}")
    done.set()
    thread.join()
    assert set(seen) == {1}


def test_a_switch_whose_answer_was_lost_is_done(
    server: SearchServer, faults: FaultServer, index: Open, alias: str
) -> None:
    """It is asked for again, and what is done already is no error."""
    works = index(faults.address)
    send(works, message("a", title="one"))
    works.make(f"{alias}-new")
    lost = [1]

    def lose(asked: Asked) -> Answer | None:
        if asked.path != "/_aliases" or not lost[0]:
            return None
        lost[0] -= 1
        faults.forward(asked)
        return Answer(0)

    faults.script = lose
    assert works.switch(f"{alias}-new") == f"{alias}-000001"
    assert server.behind(alias) == [f"{alias}-new"]


def test_an_index_that_is_no_alias_is_written_to_but_not_switched(
    server: SearchServer, index: Open, alias: str
) -> None:
    """Somebody made an index of the very name: it is used, and a reindex says why it cannot replace it."""
    server.ask("PUT", f"/{alias}", {"mappings": MAPPINGS})
    works = index()
    assert send(works, message("a", title="one")) == []
    assert works.count() == 1
    with pytest.raises(IndexNotSwitchable, match=alias) as raised:
        works.make(f"{alias}-new")
    assert "no alias" in raised.value.reason
    server.ask("PUT", f"/{alias}-new", {})
    with pytest.raises(IndexNotSwitchable, match=alias):
        works.switch(f"{alias}-new")
    assert server.documents(alias) == {"a": {"title": "one"}}
    with pytest.raises(IndexNotSwitchable):
        works.make(alias)


def test_an_alias_of_several_indices_is_refused(server: SearchServer, index: Open, alias: str) -> None:
    """Nobody could say where to write; each document would be refused for no fault of its own."""
    for name in ("one", "two"):
        server.ask("PUT", f"/{alias}-{name}", {"aliases": {alias: {}}})
    with pytest.raises(TargetRefused) as raised:
        send(index(), message("a", title="one"))
    assert f"{alias}-one, {alias}-two" in raised.value.reason


def test_an_index_that_nobody_made_is_refused(server: SearchServer, index: Open, alias: str) -> None:
    """A reindex that was to fill it did not begin, or somebody deleted it."""
    with pytest.raises(TargetRefused, match=f"{alias}-gone"):
        send(index().into(f"{alias}-gone"), message("a", title="one"))
    assert index().into(f"{alias}-gone").count() == 0


def test_nobody_answers(tmp_path: Path) -> None:
    """A server that is not there is unavailable, with its address and without waiting for ever."""
    nowhere = {"type": "opensearch", "hosts": ["http://127.0.0.1:9"], "retries": 1}
    to = {"type": "opensearch", "connection": "search", "index": "works"}
    found = target_of(tmp_path, to, search=nowhere)
    with pytest.raises(TargetUnavailable, match=r"http://127\.0\.0\.1:9") as raised:
        found.open()
    assert "tried 2 times" in raised.value.reason
    assert found.describe() == 'index "works" of http://127.0.0.1:9'
