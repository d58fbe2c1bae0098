"""Glue and S3 are opened as a project says: with keys, a profile, a role, or what the environment has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import finish, start
from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server
from tests.folder import Folder
from tests.servers.moto import BUCKET, KEY, SECRET

TOKEN = "opensesame-of-container"
WAYS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "keys": (
        {"access_key": "${GLUE_KEY}", "secret_key": "${GLUE_SECRET}"},
        {"GLUE_KEY": KEY, "GLUE_SECRET": SECRET},
    ),
    "profile": ({"profile": "museum"}, {}),
    "role": (
        {"role": "arn:aws:iam::123456789012:role/esker", "external_id": "museum"},
        {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET},
    ),
    "environment": ({}, {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}),
    # As in a container of ECS or EKS, which has no keys itself: a server beside it hands them out.
    "container": ({}, {"AWS_CONTAINER_AUTHORIZATION_TOKEN": TOKEN}),
}


@pytest.fixture
def keeper() -> Iterator[FaultServer]:
    """A server that hands out keys to whoever shows the token."""
    keys = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": "2099-01-01T00:00:00Z"}

    def script(asked: Asked) -> Answer:
        is_known = asked.headers.get("Authorization") == TOKEN
        return Answer(200, json.dumps(keys).encode()) if is_known else Answer(403)

    with running_fault_server() as server:
        server.script = script
        yield server


@pytest.mark.process
@pytest.mark.server
@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_rows_arrive(way: str, moto: str, keeper: FaultServer, tmp_path: Path) -> None:
    """In a process of its own, whose environment has nothing of AWS but what the way needs."""
    keys, environment = WAYS[way]
    if way == "container":
        environment = environment | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{keeper.address}/keys"}
    # With a role, Iceberg's client takes the address of another Glue from the environment only.
    place = {"endpoint": moto} if way != "role" else {}
    environment = environment | ({"AWS_ENDPOINT_URL_GLUE": moto} if way == "role" else {})
    profile = tmp_path / "credentials"
    profile.write_text(f"[museum]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    folder = Folder(
        tmp_path / "project",
        catalog={"type": "glue", "warehouse": f"s3://{BUCKET}/{way}", **place},
        store={"type": "s3", "endpoint": moto, "path_style": True, "region": "us-east-1", **keys},
        pipelines={"works": Folder.files_pipeline(table=f"{way}.works", mode="upsert", key=["id"])},
    )
    folder.write_csv("landing/a.csv", ["id", "name"], [(1, "agate"), (2, "basalt")])
    nothing = {"AWS_SHARED_CREDENTIALS_FILE": str(profile), "AWS_CONFIG_FILE": str(tmp_path / "none")}
    nothing |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_STS": moto}
    answer = finish(start(folder.path, "run", "--json", env=nothing | environment))
    assert answer.status == 0, answer.stdout + answer.stderr
    assert answer.document["pipelines"][0]["rows"]["inserted"] == 2
    for secret in (SECRET, TOKEN):
        assert secret not in answer.stdout + answer.stderr
    asked = {asked.headers.get("User-Agent", "").partition("/")[0] for asked in keeper.asked}
    # Spark's client, and Arrow's in this process, which does not say its name: both find their way.
    assert asked == ({"aws-sdk-java", ""} if way == "container" else set())
