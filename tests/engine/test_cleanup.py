"""A clean-up that fails never hides why it was needed, and stores that refuse all deletes are not asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from esker.engine.cleanup import cleaning_up
from esker.engine.iceberg.expiry import expire_snapshots
from esker.engine.iceberg.table import TableId
from esker.errors import BadRows
from tests.folder import Folder
from tests.servers.proxy import Proxy, running_proxy
from tests.servers.seaweedfs import SeaweedFS

_ACCOUNT = "000000000000"


def test_error_of_the_block_comes_before_that_of_the_clean_up() -> None:
    def fail() -> None:
        raise OSError("the clean-up")

    with pytest.raises(KeyError, match="the block"), cleaning_up(fail):
        raise KeyError("the block")
    with pytest.raises(KeyboardInterrupt), cleaning_up(fail):
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="the clean-up"), cleaning_up(fail):
        pass


@pytest.fixture
def refusing(seaweedfs: SeaweedFS) -> Iterator[Proxy]:
    """A store that answers 403 to every delete."""

    def refuse(method: str, path: str) -> int | None:
        return 403 if is_delete(method, path) else None

    with running_proxy(seaweedfs.endpoint) as proxy:
        proxy.refuse = refuse
        yield proxy


def is_delete(method: str, path: str) -> bool:
    return method == "DELETE" or (method == "POST" and "delete" in path.partition("?")[2])


@pytest.mark.spark
@pytest.mark.server
def test_bad_rows_are_what_people_hear_of(
    seaweedfs: SeaweedFS, refusing: Proxy, tmp_path: Path, spark_running: None
) -> None:
    """Not that the files which were staged before cannot be removed."""
    store = seaweedfs.store(refusing.address)
    load_bad_rows(tmp_path, {"type": "sqlite", "warehouse": seaweedfs.new_prefix()}, store)
    assert [each for each in refusing.traffic.exchanges if is_delete(each.method, each.path)]


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize("kind", ["s3tables", "rest"])
def test_nothing_is_deleted_in_a_table_bucket(
    seaweedfs: SeaweedFS, tmp_path: Path, spark_running: None, kind: str
) -> None:
    """Amazon S3 Tables refuses deletes, and removes what no snapshot names by itself."""
    warehouse = seaweedfs.new_warehouse()
    arn = f"arn:aws:s3tables:us-east-1:{_ACCOUNT}:bucket/{warehouse.removeprefix('s3://')}"
    catalog: dict[str, Any] = {"type": kind, "warehouse": arn, "uri": seaweedfs.uri}
    if kind == "rest":
        catalog["sigv4"] = {"region": "us-east-1", "service": "s3tables"}
    project = load_bad_rows(tmp_path, catalog, seaweedfs.store())
    staged = [path for path in seaweedfs.list(warehouse) if "/sales/data/" in path]
    assert len(staged) == 2  # that of the table, and that of the batch with the bad row

    project.write_csv("landing/b.csv", ["id"], [(2,)])
    project.run()
    engine, table = project.open().engine, TableId("lake", "shop.sales")
    engine.open_catalog("lake")
    there = seaweedfs.list(warehouse)
    expire_snapshots(engine, table, keep=1, before=datetime.now(UTC) + timedelta(hours=1))
    assert engine.spark.table("lake.shop.sales.snapshots").count() == 2, "the bucket expires them itself"
    assert seaweedfs.list(warehouse) == there


def load_bad_rows(folder: Path, catalog: dict[str, Any], store: dict[str, Any]) -> Folder:
    """Load a good file, and one with a bad row: its good rows are staged, and not loaded."""
    project = Folder(
        folder / "project",
        catalog=catalog,
        store=store,
        pipelines={"sales": Folder.files_pipeline(columns={"id": "bigint"})},
    )
    project.write_csv("landing/a.csv", ["id"], [(1,)])
    project.run()
    project.write_csv("landing/b.csv", ["id"], [(2,), ("three",)])
    with pytest.raises(BadRows):
        project.run()
    assert project.rows("shop.sales", "id") == [(1,)]
    return project
