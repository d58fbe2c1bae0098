"""Every kind of target is found by its declaration, and says which package it lacks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from esker.deliver.targets import _TARGETS
from esker.errors import MissingPackage
from esker.project.targets import AnyTarget
from tests.deliver.targets.made import target_of

SEARCH = {"type": "opensearch", "hosts": ["http://localhost:9200"]}
KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "opensearch": ({"index": "works", "connection": "server"}, "httpx2", "search"),
    "webhook": ({"connection": "server"}, "httpx2", "search"),
    "kafka": ({"topic": "works", "connection": "server"}, "confluent_kafka", "kafka"),
    "sns": ({"topic": "arn:aws:sns:eu-west-1:123456789012:works"}, "boto3", "aws"),
    "sqs": ({"queue": "https://sqs.eu-west-1.amazonaws.com/1/works"}, "boto3", "aws"),
}
CONNECTIONS: dict[str, dict[str, Any]] = {
    "opensearch": SEARCH,
    "webhook": {"type": "webhook", "url": "http://localhost"},
    "kafka": {"type": "kafka", "servers": "localhost:9092"},
}


def test_every_declaration_has_a_target() -> None:
    """A kind that can be declared can be delivered to."""
    declared = {kind.model_fields["type"].default for kind in get_args(get_args(AnyTarget)[0])}
    assert declared == set(_TARGETS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_that_is_not_installed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names it, and how to install it."""
    keys, package, extra = KINDS[kind]
    for name in [name for name in sys.modules if name.startswith("esker.deliver.targets.")]:
        if not name.endswith((".target", ".content", ".patience")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    connections = {"server": CONNECTIONS[kind]} if kind in CONNECTIONS else {}
    with pytest.raises(MissingPackage, match=f"targets of type .*{kind}") as raised:
        target_of(tmp_path, {"type": kind, **keys}, **connections)
    assert f"'esker[{extra}]'" in raised.value.remedy
