"""The floor of a small batch: what one row costs in calls to Java, Spark jobs and transactions.

Counts, not times: they are the same on every machine, and each stands for time that users wait.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esker.pipeline.api import OpenProject
from tests.contracts.folder import FILE
from tests.contracts.narrow import NARROW
from tests.folder import Folder
from tests.java_calls import Asked, asked

pytestmark = pytest.mark.spark

COLUMNS = {"id": {"type": "bigint", "required": True}, "name": {"type": "string", "required": True}}
KEYS: dict[str, Any] = {"mode": "upsert", "key": ["id"], "order_by": "version"}
WAYS: dict[str, tuple[dict[str, Any], int]] = {
    # With what a pipeline declares, and how many calls to Java a load of one row may make then.
    "plain": ({"columns": COLUMNS}, 30),
    "partitioned": ({"columns": COLUMNS, "partition_by": ["bucket(10, id)"]}, 32),
    "third version": ({"columns": COLUMNS, "format_version": 3}, 30),
    "contract": ({"contract": FILE}, 60),
    "hard deletes": ({"columns": COLUMNS, "deletes": "hard"}, 30),
}
TRANSACTIONS = 10


def rows(*ids: int, version: int) -> pa.Table:
    found = [{"id": number, "name": f"row {number + version}", "version": version} for number in ids]
    return pa.Table.from_pylist(found)


def load_of_one(project: OpenProject) -> Asked:
    """Return what a load of one known row asks for, once all that is kept is there."""
    project.load("works", rows(1, 2, 3, version=1))
    for version in (2, 3):
        project.load("works", rows(1, version=version))
    with asked(project) as found:
        result = project.load("works", rows(1, version=4))
    assert result.rows.updated == 1
    return found


@pytest.mark.parametrize("way", WAYS)
def test_one_row_costs_few_calls(tmp_path: Path, spark_running: None, way: str) -> None:
    """No Spark job, and few calls to Java and transactions: table, change log and ledger included."""
    keys, most = WAYS[way]
    pipeline = Folder.files_pipeline("none/*", "parquet", "shop.works", **KEYS, **keys)
    folder = Folder(tmp_path / "project", pipelines={"works": pipeline})
    folder.write(FILE, NARROW)
    found = load_of_one(folder.open())
    print(f"{way}: {len(found.calls)} calls, {found.transactions} transactions")
    assert found.jobs == 0
    assert len(found.calls) <= most, "\n".join(f"{n} {call}" for call, n in found.by_name.most_common())
    assert found.transactions <= TRANSACTIONS


def test_calls_do_not_grow_with_the_batch_or_the_table(tmp_path: Path, spark_running: None) -> None:
    """A hundred rows in ten partitions take as many calls as one, after twenty loads too."""
    layout = {"columns": COLUMNS, "partition_by": ["bucket(10, id)"]}
    pipeline = Folder.files_pipeline("none/*", "parquet", "shop.works", **KEYS, **layout)
    project = Folder(tmp_path / "project", pipelines={"works": pipeline}).open()
    few = len(load_of_one(project).calls)
    for version in range(5, 25):
        project.load("works", rows(*range(100), version=version))
    with asked(project) as found:
        project.load("works", rows(*range(100), version=25))
    assert len(found.calls) <= few
    assert found.jobs == 0
