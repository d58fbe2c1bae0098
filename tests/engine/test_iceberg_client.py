"""Stores that only Iceberg's own client opens: everything is loaded there too, in both lanes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.folder import FILE, contract
from tests.folder import Folder
from tests.load.works import LANES, Works
from tests.servers import moto as moto_server
from tests.servers.proxy import running_proxy
from tests.servers.request_signer import running_signer
from tests.servers.seaweedfs import KEY, SeaweedFS

FIRST = [{"id": number, "at": 1, "name": f"stone {number}"} for number in range(6)]
SECOND = [
    {"id": 1, "at": 2, "name": "agate"},
    {"id": 2, "at": 2, "name": None, "deleted": True},
    {"id": 7, "at": 1, "name": "chalk"},
    {"id": None, "at": 1, "name": "without a key"},
]
CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - {name: day, logicalType: string}
    - {name: amount, logicalType: integer, logicalTypeOptions: {minimum: 0}}
    """
)


def try_upsert(project: dict[str, Any], folder: Path, lane: str) -> Works:
    """Load rows by key, with updates, deletes, bad rows, the change log and a second run's lookup."""
    works = Works(folder, project, order_by="at", deletes="hard", lane=lane)
    works.load(FIRST)
    second = works.load(SECOND)
    assert (second.rows.updated, second.rows.deleted, second.rows.inserted) == (1, 1, 1)
    assert (second.rows.quarantined, second.log_lag) == (1, 0)
    names = {id: row["name"] for id, row in works.rows().items()}
    assert names == {0: "stone 0", 1: "agate", 3: "stone 3", 4: "stone 4", 5: "stone 5", 7: "chalk"}
    assert works.ops(2) == {1: "update", 2: "delete", 7: "insert"}
    assert works.load(SECOND[:1]).rows.unchanged == 1
    return works


def try_all_modes(project: dict[str, Any], path: Path) -> None:
    """Load with sync, replace_partitions and a contract, whose quality history is read again."""
    folder = Folder(
        path,
        **project,
        pipelines={
            "all": Folder.files_pipeline(
                "landing/all/*.csv",
                table="shop.all",
                mode="sync",
                key=["id"],
                deletes="hard",
                guard={"max_delete": "50%"},
            ),
            "days": Folder.files_pipeline(
                "landing/days/*.csv", table="shop.days", mode="replace_partitions", partition_by=["day"]
            ),
            "sales": Folder.files_pipeline(table="shop.sales", contract=FILE),
        },
    )
    folder.write(FILE, CONTRACT)
    header = ["id", "day", "amount"]
    for number, rows in enumerate(([(1, "a", 1), (2, "b", 2)], [(2, "b", 3), (3, "b", 4)])):
        for place in ("all", "days"):
            folder.write_csv(f"landing/{place}/{number}.csv", header, rows)
        folder.write_csv(f"landing/{number}.csv", header, [*rows, (9, "c", -1)])
        for name in ("all", "days", "sales"):
            folder.run(name)
        # All files that are there are the whole: the next run finds the second one alone.
        (path / f"landing/all/{number}.csv").unlink()
    assert folder.rows("shop.all", "id", "amount") == [(2, 3), (3, 4)]
    assert folder.rows("shop.days", "id", "amount") == [(1, 1), (2, 3), (3, 4)]
    opened = folder.open()
    now = {each.metric: each for each in opened.quality("shop.sales", beside="1")}
    assert (now["record_count"].value, now["record_count"].earlier) == (4, 2)
    assert now["rows_bad"].value == 1


@pytest.fixture
def signed_store(seaweedfs: SeaweedFS) -> Iterator[dict[str, Any]]:
    """A project without keys: a server signs each request, and only Iceberg's own client asks it."""
    with running_signer(KEY, seaweedfs.secret) as signer:
        signing = {"s3.remote-signing-enabled": "true", "signer.uri": signer.address}
        signing |= {"signer.endpoint": "sign", "s3.signer.uri": signer.address, "s3.signer.endpoint": "sign"}
        lake = seaweedfs.catalog(seaweedfs.new_warehouse())
        store = {"type": "s3", "endpoint": seaweedfs.endpoint, "path_style": True, "region": "us-east-1"}
        yield {"catalog": lake | {"properties": signing}, "store": store}
        assert signer.asked


@pytest.fixture
def assumed_role(moto: str, tmp_path: Path, spark_running: None) -> Iterator[dict[str, Any]]:
    """A project whose store has a role. Keys that may assume it are Java's alone."""
    jvm: Any = Folder(tmp_path / "first").open().engine.spark.sparkContext._jvm
    system = jvm.java.lang.System
    own = {"aws.accessKeyId": moto_server.KEY, "aws.secretAccessKey": moto_server.SECRET}
    own |= {"aws.endpointUrlSts": moto, "aws.region": "us-east-1"}
    with running_proxy(moto) as proxy:
        # Only keys of a role: those that a role is assumed with open nothing.
        proxy.admit = lambda headers: (
            headers if "Credential=ASIA" in headers.get("Authorization", "") else None
        )
        catalog = {"type": "sqlite", "warehouse": f"s3://{moto_server.BUCKET}/{tmp_path.name}"}
        store = {"type": "s3", "endpoint": proxy.address, "path_style": True, "region": "us-east-1"}
        store |= {"role": "arn:aws:iam::123456789012:role/esker", "external_id": "museum"}
        for name, value in own.items():
            system.setProperty(name, value)
        try:
            yield {"catalog": catalog, "store": store}
        finally:
            for name in own:
                system.clearProperty(name)


@pytest.fixture
def in_hdfs(hive: int, hdfs: str, tmp_path: Path, spark_running: None) -> Iterator[dict[str, Any]]:
    """A project whose tables are in HDFS."""
    place = f"{hdfs}/{tmp_path.name}"
    project = {"catalog": {"type": "hive", "uri": f"thrift://127.0.0.1:{hive}", "warehouse": place}}
    yield project
    # All tests see the one metastore.
    empty(Folder(tmp_path / "emptied", **project))
    Folder(tmp_path / "emptied", **project).open().engine.spark.sql("DROP NAMESPACE lake.shop")


def empty(folder: Folder) -> None:
    """Drop all tables."""
    spark = folder.open().engine.spark
    for table in spark.sql("SHOW TABLES IN lake.shop").collect():
        spark.sql(f"DROP TABLE lake.shop.{table.tableName}")


@pytest.fixture(params=["signed_store", "assumed_role", "in_hdfs"])
def other_store(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A project whose tables' files this process does not reach."""
    project: dict[str, Any] = request.getfixturevalue(request.param)
    return project


@pytest.mark.spark
@pytest.mark.server
def test_rows_by_key(signed_store: dict[str, Any], tmp_path: Path, spark_running: None) -> None:
    """In this process, by Iceberg's client."""
    try_upsert(signed_store, tmp_path / "project", "small")


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.soak
def test_all_modes(other_store: dict[str, Any], tmp_path: Path, spark_running: None) -> None:
    """On every such store; what is written is whole, as `esker fsck` reads it."""
    for lane in LANES:
        works = try_upsert(other_store, tmp_path / lane, lane)
        assert works.project.fsck(["shop.works"], deep=True).is_clean
        empty(works.folder)
    try_all_modes(other_store, tmp_path / "modes")
    doctor = Folder(tmp_path / "doctor", **other_store).open().doctor()
    assert [finding.detail for finding in doctor if not finding.ok] == []
