"""Ways into REST catalogs that SeaweedFS does not have itself: a gateway before it has them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from esker.errors import CatalogUnreachable
from tests.load.works import LANES, Works
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
