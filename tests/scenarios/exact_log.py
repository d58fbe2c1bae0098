"""What must be true of a change log, whatever happened to those who wrote it."""

from __future__ import annotations

from pyspark.sql import Row

from esker.ledger.change_log import CHANGESET, OP
from tests.folder import Folder


def exact_log(folder: Folder) -> list[Row]:
    """Return the log of `shop.sales` in order: changesets 1 to n, one snapshot each, each change once."""
    spark = folder.open().engine.spark
    log = spark.table("lake.shop.sales__changes").orderBy(CHANGESET).collect()
    changesets = sorted({row[CHANGESET] for row in log})
    assert changesets == list(range(1, len(changesets) + 1))
    assert len({(row[CHANGESET], row["id"]) for row in log}) == len(log)
    snapshots = spark.sql(
        "SELECT summary FROM lake.shop.sales__changes.snapshots ORDER BY committed_at"
    ).collect()
    assert [int(row.summary["esker.changeset"]) for row in snapshots] == changesets
    assert {row[OP] for row in log} <= {"insert", "update", "delete", "undelete"}
    return log
