"""A clean-up that fails never hides why it was needed, and stores that refuse all deletes are not asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esker.engine.cleanup import cleaning_up
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
@pytest.mark.parametrize("kind", ["rest", "s3tables"])
def test_bad_rows_are_what_people_hear_of(
    kind: str, seaweedfs: SeaweedFS, refusing: Proxy, tmp_path: Path, spark_running: None
) -> None:
    """Not that the files which were staged before cannot be removed. On S3 Tables nobody tries to."""
    warehouse = seaweedfs.new_warehouse()
    catalog: dict[str, Any] = seaweedfs.catalog(warehouse)
    if kind == "s3tables":
        bucket = warehouse.removeprefix("s3://")
        arn = f"arn:aws:s3tables:us-east-1:{_ACCOUNT}:bucket/{bucket}"
        catalog = {"type": "s3tables", "warehouse": arn, "uri": seaweedfs.uri}
    folder = Folder(
        tmp_path / "project",
        catalog=catalog,
        store=seaweedfs.store(refusing.address),
        pipelines={"sales": Folder.files_pipeline(columns={"id": "bigint"})},
    )
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.write_csv("landing/b.csv", ["id"], [(2,), ("three",)])
    with pytest.raises(BadRows):
        folder.run()
    assert folder.rows("shop.sales", "id") == [(1,)]
    deletes = [each for each in refusing.traffic.exchanges if is_delete(each.method, each.path)]
    assert bool(deletes) == (kind == "rest")
