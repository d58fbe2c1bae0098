"""A REST catalog with its tables in S3, which PyIceberg shares. Its keys are told to nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from esker.errors import CatalogUnreachable, StoreUnreachable
from tests.folder import Folder
from tests.load.works import LANES, Works
from tests.servers.seaweedfs import SeaweedFS

pytestmark = [pytest.mark.spark, pytest.mark.server]

FIRST = [{"id": number, "at": 1, "name": f"stone {number}"} for number in range(6)]
SECOND = [
    {"id": 1, "at": 2, "name": "agate"},
    {"id": 2, "at": 2, "name": None, "deleted": True},
    {"id": 7, "at": 1, "name": "chalk"},
    {"id": None, "at": 1, "name": "without a key"},
]


@pytest.mark.parametrize("lane", LANES)
def test_rows_by_key_in_both_lanes(
    lane: str, seaweedfs: SeaweedFS, tmp_path: Path, spark_running: None
) -> None:
    """Table, change log and quarantine are right, and PyIceberg reads what Spark reads."""
    warehouse = seaweedfs.new_warehouse()
    project = {"catalog": seaweedfs.catalog(warehouse), "store": seaweedfs.store()}
    works = Works(tmp_path / "project", project, order_by="at", deletes="hard", lane=lane)
    works.load(FIRST)
    second = works.load(SECOND)
    assert (second.rows.updated, second.rows.deleted, second.rows.inserted) == (1, 1, 1)
    assert (second.rows.quarantined, second.log_lag) == (1, 0)
    assert {id: row["name"] for id, row in works.rows().items()} == {
        0: "stone 0",
        1: "agate",
        3: "stone 3",
        4: "stone 4",
        5: "stone 5",
        7: "chalk",
    }
    assert works.ops(2) == {1: "update", 2: "delete", 7: "insert"}

    read = (
        seaweedfs.pyiceberg(warehouse)
        .load_table("shop.works")
        .scan(selected_fields=("id", "name"))
        .to_arrow()
    )
    assert {row["id"]: row["name"] for row in read.to_pylist()} == {
        id: row["name"] for id, row in works.rows().items()
    }


def test_wrong_keys_stop_the_run_and_are_told_to_nobody(
    seaweedfs: SeaweedFS, tmp_path: Path, spark_running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor says which is wrong, the catalog or the store; so does a run. A token works as well."""
    monkeypatch.setenv("WRONG_SECRET", "mistaken-sesame")
    monkeypatch.setenv("CATALOG_TOKEN", seaweedfs.token())
    warehouse = seaweedfs.new_warehouse()
    lake = seaweedfs.catalog(warehouse)
    by_token = {key: lake[key] for key in ("type", "uri", "warehouse")} | {"token": "${CATALOG_TOKEN}"}
    folder = Folder(
        tmp_path / "project",
        catalog=by_token,
        store=seaweedfs.store(),
        connections={
            "refused": {**lake, "credential": "nobody:${WRONG_SECRET}"},
            "closed": {**lake, "store": "locked"},
            "locked": {**seaweedfs.store(), "secret_key": "${WRONG_SECRET}"},
            "files": {"type": "sqlite", "path": "files.db", "warehouse": seaweedfs.new_prefix()},
        },
        pipelines={
            name: Folder.files_pipeline(table=f"shop.{name}", catalog=name) for name in ("refused", "closed")
        },
    )
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    result = CliRunner().invoke(app, ["doctor", "--json", "--project", str(folder.path)])
    checks = {check["check"]: check for check in json.loads(result.stdout)["checks"]}
    assert [name for name, check in checks.items() if not check["ok"]] == [
        "store of closed",
        "catalog refused",
    ]
    assert checks["store of closed"]["detail"].startswith(StoreUnreachable.code)
    assert checks["catalog refused"]["detail"].startswith(CatalogUnreachable.code)
    assert {"store of lake", "catalog lake", "store of files", "catalog files"} < set(checks)

    with pytest.raises(CatalogUnreachable):
        folder.run("refused")
    with pytest.raises(StoreUnreachable):
        folder.run("closed")
    assert "mistaken-sesame" not in result.stdout
    written = [path for path in (folder.path / ".esker").rglob("*") if path.is_file()]
    assert not [path for path in written if b"mistaken-sesame" in path.read_bytes()]
