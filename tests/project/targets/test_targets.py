"""Declarations of targets and of the connections that they name."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from esker.project import Project
from esker.project.connections import AwsConnection, KafkaConnection, WebhookConnection
from esker.project.declaration import MistakeAt
from esker.project.secrets import FromEnvironment
from esker.project.targets import AnyTarget, TargetDeclaration

ANY: TypeAdapter[TargetDeclaration] = TypeAdapter(AnyTarget)
CONNECTIONS: dict[str, dict[str, Any]] = {
    "search": {"type": "elasticsearch", "hosts": ["http://localhost:9200/"]},
    "open": {"type": "opensearch", "hosts": ["https://one:9200", "https://two:9200"]},
    "broker": {"type": "kafka", "servers": "one:9092, two:9092"},
    "hook": {"type": "webhook", "url": "https://example.org/hook?key=1"},
    "amazon": {"type": "aws", "region": "eu-west-1"},
    "lake": {"type": "s3"},
    "other": {"type": "sqlite"},
}
TOPIC = "arn:aws:sns:eu-west-1:123456789012:works"


def project(**connections: Any) -> Project:
    return Project.model_validate({"project": "museum", "connections": {**CONNECTIONS, **connections}})


@pytest.mark.parametrize(
    "to",
    [
        {"type": "elasticsearch", "connection": "search", "index": "works"},
        {"type": "opensearch", "connection": "open", "index": "works", "settings": {"number_of_shards": 3}},
        {"type": "kafka", "connection": "broker", "topic": "works"},
        {"type": "webhook", "connection": "hook", "batch_size": 100},
        {"type": "sns", "connection": "amazon", "topic": TOPIC},
        {"type": "sns", "topic": f"{TOPIC}.fifo"},
        {"type": "sqs", "connection": "amazon", "queue": "https://sqs.eu-west-1.amazonaws.com/1/works"},
        {"type": "files", "path": "out/works"},
        {"type": "files", "path": "s3://bucket/works", "connection": "lake", "format": "parquet"},
        {"type": "python", "function": "targets/works.py:keep"},
    ],
    ids=lambda to: to["type"],
)
def test_every_kind_finds_its_connection(to: dict[str, Any]) -> None:
    """What is declared as the reference says is accepted."""
    declared = ANY.validate_python(to)
    assert declared.type == to["type"]
    declared.check_connection(project().connections, ("consumers", "works", "to"))


def test_connections_of_servers_are_no_catalogs() -> None:
    """Spark opens the catalogs of a project, and nothing else."""
    assert list(project().catalogs()) == ["lake", "other"]
    assert not project().has_catalog("search")


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (
            {"type": "elasticsearch", "connection": "open", "index": "works"},
            "it is of type opensearch; there is search",
        ),
        ({"type": "elasticsearch", "connection": "serch", "index": "works"}, 'did you mean "search"?'),
        ({"type": "kafka", "connection": "nobody", "topic": "works"}, "declare it below connections:"),
        ({"type": "sns", "connection": "lake", "topic": TOPIC}, "is no connection of type aws"),
        ({"type": "files", "path": "gs://bucket/a", "connection": "lake"}, "and the path of gcs"),
    ],
)
def test_a_connection_of_another_kind_is_refused(to: dict[str, Any], why: str) -> None:
    """The mistake is where the target names it."""
    with pytest.raises(MistakeAt) as raised:
        ANY.validate_python(to).check_connection(project().connections, ("consumers", "works", "to"))
    assert raised.value.path == ("consumers", "works", "to", "connection")
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ({"type": "elasticsearch", "connection": "search", "index": "Works"}, "is no name of an index"),
        ({"type": "elasticsearch", "connection": "search", "index": "_works"}, "is no name of an index"),
        ({"type": "opensearch", "connection": "open", "index": "a" * 241}, "too long"),
        ({"type": "kafka", "connection": "broker", "topic": "a b"}, "pattern"),
        ({"type": "sns", "topic": "works"}, "pattern"),
        ({"type": "sqs", "queue": "works"}, "must begin with http"),
        ({"type": "files", "path": "out", "connection": "lake"}, "need no connection"),
        ({"type": "files", "path": "ftp://a/b"}, "ftp://"),
        ({"type": "files", "path": "az://container/a"}, "say which account"),
        ({"type": "python", "function": "keep"}, "file and function"),
        ({"type": "carrier_pigeon"}, "carrier_pigeon"),
    ],
)
def test_mistakes_in_targets(to: dict[str, Any], why: str) -> None:
    """Each is told in words that help."""
    with pytest.raises(ValidationError, match=why):
        ANY.validate_python(to)


SECRET = FromEnvironment("opensesame-connections")


@pytest.mark.parametrize(
    ("connection", "why"),
    [
        ({"type": "elasticsearch", "hosts": []}, "at least 1"),
        ({"type": "elasticsearch", "hosts": ["localhost:9200"]}, "must begin with http"),
        ({"type": "elasticsearch", "hosts": ["http://me:word@localhost"]}, "holds credentials"),
        ({"type": "opensearch", "hosts": ["http://a"], "user": "me"}, "of no use without password"),
        ({"type": "opensearch", "hosts": ["http://a"], "api_key": "plain"}, "stands here as text"),
        (
            {
                "type": "opensearch",
                "hosts": ["http://a"],
                "user": "me",
                "password": SECRET,
                "api_key": SECRET,
            },
            "two ways in",
        ),
        ({"type": "kafka", "servers": "localhost"}, "is no broker"),
        ({"type": "kafka", "servers": "a:1", "user": "me"}, "of no use without password"),
        ({"type": "kafka", "servers": "a:1", "ca_file": "ca.pem"}, "without tls"),
        ({"type": "kafka", "servers": "a:1", "properties": {"acks": 1}}, "set by Esker"),
        ({"type": "kafka", "servers": "a:1", "properties": {"sasl.username": "a"}}, "write user:"),
        ({"type": "kafka", "servers": "a:1", "properties": {"ssl.key.password": "a"}}, "secret_properties"),
        ({"type": "kafka", "servers": "a:1", "secret_properties": {"a": "b"}}, "stands here as text"),
        ({"type": "webhook", "url": "example.org"}, "must begin with http"),
        ({"type": "webhook", "url": "http://a", "headers": {"Authorization": "x"}}, "holds credentials"),
        ({"type": "webhook", "url": "http://a", "headers": {"Content-Type": "x"}}, "set by Esker"),
        ({"type": "webhook", "url": "http://a", "secret_headers": {"X-Key": "x"}}, "stands here as text"),
        ({"type": "webhook", "url": "http://a", "signature": {"secret": "x"}}, "stands here as text"),
        ({"type": "aws", "access_key": SECRET}, "of no use without secret_key"),
        ({"type": "aws", "endpoint": "localhost"}, "must begin with http"),
    ],
)
def test_mistakes_in_connections(connection: dict[str, Any], why: str) -> None:
    """Each is told in words that help."""
    with pytest.raises(ValidationError, match=why):
        project(mine=connection)


def test_secrets_are_not_shown() -> None:
    """Neither in a declaration as text, nor in what is made of it."""
    found = project(
        mine={"type": "opensearch", "hosts": ["http://a"], "user": "me", "password": SECRET},
        queue={"type": "kafka", "servers": "a:1", "user": "me", "password": SECRET},
        post={
            "type": "webhook",
            "url": "http://a",
            "signature": {"secret": SECRET},
            "secret_headers": {"a": SECRET},
        },
        cloud={"type": "aws", "access_key": SECRET, "secret_key": SECRET},
    )
    assert SECRET not in f"{found!r} {found} {found.model_dump_json()}"
    for name, kind in (("queue", KafkaConnection), ("post", WebhookConnection), ("cloud", AwsConnection)):
        assert isinstance(found.connections[name], kind)
