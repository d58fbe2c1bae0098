"""Ways into REST catalogs that SeaweedFS does not have itself: a gateway before it has them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from esker.errors import CatalogUnreachable
from esker.events import Event, Step
from tests.load.works import LANES, Works, at
from tests.servers.proxy import Proxy, running_proxy
from tests.servers.seaweedfs import KEY, SeaweedFS

pytestmark = [pytest.mark.spark, pytest.mark.server]


@pytest.fixture
def gateway(seaweedfs: SeaweedFS) -> Iterator[Proxy]:
    with running_proxy(seaweedfs.uri) as proxy:
        yield proxy


def test_user_and_password(
    seaweedfs: SeaweedFS,
    gateway: Proxy,
    tmp_path: Path,
    spark_running: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are sent with each request; wrong ones end the run, and are told to nobody."""
    token = seaweedfs.token()
    right = base64.b64encode(b"esker:open-the-gateway").decode()

    def admit(headers: dict[str, str]) -> dict[str, str] | None:
        others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        if right != headers.get("Authorization", "").removeprefix("Basic "):
            return None
        return others | {"Authorization": f"Bearer {token}"}

    gateway.admit = admit
    catalog = {
        "type": "rest",
        "uri": gateway.address,
        "warehouse": seaweedfs.new_warehouse(),
        "user": "esker",
        "password": "${GATEWAY_PASSWORD}",
    }
    monkeypatch.setenv("GATEWAY_PASSWORD", "open-the-gateway")
    works = Works(tmp_path / "project", {"catalog": catalog, "store": seaweedfs.store()})
    works.load([{"id": 1, "name": "agate"}])
    assert works.rows()[1]["name"] == "agate"

    monkeypatch.setenv("GATEWAY_PASSWORD", "mistaken-sesame")
    wrong = Works(tmp_path / "wrong", {"catalog": catalog, "store": seaweedfs.store()})
    with pytest.raises(CatalogUnreachable) as caught:
        wrong.load([{"id": 2, "name": "basalt"}])
    assert "mistaken-sesame" not in str(caught.value.as_json())


def test_keys_that_the_server_hands_out(
    seaweedfs: SeaweedFS, gateway: Proxy, tmp_path: Path, spark_running: None
) -> None:
    """The project has none: Spark and this process open the files with those that come with the table."""
    asked = []

    def revise(path: str, headers: dict[str, str], content: bytes) -> bytes:
        names = {name.lower(): value for name, value in headers.items()}
        if "/tables" not in path or names.get("x-iceberg-access-delegation") != "vended-credentials":
            return content
        answer = json.loads(content)
        if "metadata" in answer:
            asked.append(path)
            keys = {"s3.access-key-id": KEY, "s3.secret-access-key": seaweedfs.secret}
            answer["config"] = {**answer.get("config", {}), **keys}
        return json.dumps(answer).encode()

    gateway.revise = revise
    catalog = seaweedfs.catalog(seaweedfs.new_warehouse(), gateway.address) | {"vended_credentials": True}
    store = {"type": "s3", "endpoint": seaweedfs.endpoint, "path_style": True}
    for lane in LANES:
        works = Works(tmp_path / lane, {"catalog": catalog, "store": store}, lane=lane)
        works.load([{"id": 1, "name": lane}])
        assert works.rows()[1]["name"] == lane
    assert asked


@dataclass
class HandedOut:
    """Keys that a gateway hands out with a table, and how often it did."""

    secret: str
    life: float | None = None
    """Seconds until they expire, as the gateway says."""
    wrong: int = 0
    """So many of the next keys open nothing, like those that have expired."""
    tables: list[str] = field(default_factory=list)

    def revise(self, path: str, headers: dict[str, str], content: bytes) -> bytes:
        if "/tables" not in path or not content:
            return content
        answer = json.loads(content)
        if "metadata" not in answer:
            return content
        self.tables.append(path.rpartition("/")[2])
        keys = {"s3.access-key-id": KEY, "s3.secret-access-key": self.secret}
        if path.endswith("/works") and self.wrong:
            self.wrong -= 1
            keys["s3.secret-access-key"] = "expired-sesame"
        if self.life is not None:
            keys["s3.session-token-expires-at-ms"] = str(int((time.time() + self.life) * 1000))
        answer["config"] = {**answer.get("config", {}), **keys}
        return json.dumps(answer).encode()

    def project(self, seaweedfs: SeaweedFS, gateway: Proxy) -> dict[str, Any]:
        gateway.revise = self.revise
        catalog = seaweedfs.catalog(seaweedfs.new_warehouse(), gateway.address)
        store = {"type": "s3", "endpoint": seaweedfs.endpoint, "path_style": True}
        return {"catalog": catalog | {"vended_credentials": True}, "store": store}


def test_keys_are_renewed_while_a_batch_is_loaded(
    seaweedfs: SeaweedFS, gateway: Proxy, tmp_path: Path, spark_running: None
) -> None:
    """Before they expire: what follows a long comparison is written with others."""
    keys = HandedOut(seaweedfs.secret, life=4)
    works = Works(tmp_path / "project", keys.project(seaweedfs, gateway))
    works.load([{"id": 1, "name": "agate"}])
    begun = 0

    def wait() -> None:
        nonlocal begun
        time.sleep(4)
        begun = len(keys.tables)

    def look() -> None:
        assert "works" in keys.tables[begun:]

    both = [at(Step.LOCATED, wait), at(Step.WRITTEN, look)]

    def listen(event: Event) -> None:
        for each in both:
            each(event)

    works.load([{"id": 1, "name": "basalt"}], listen)
    assert begun
    assert works.rows()[1]["name"] == "basalt"


def test_refused_keys_are_asked_for_again(
    seaweedfs: SeaweedFS, gateway: Proxy, tmp_path: Path, spark_running: None
) -> None:
    """Where the gateway does not say when they expire."""
    keys = HandedOut(seaweedfs.secret)
    project = keys.project(seaweedfs, gateway)
    Works(tmp_path / "first", project).load([{"id": 1, "name": "agate"}])
    keys.wrong = 1
    again = Works(tmp_path / "first", project)
    again.load([{"id": 1, "name": "basalt"}])
    assert not keys.wrong
    assert again.rows()[1]["name"] == "basalt"
