"""Modes whose batch is all there is, and those that swap instead of comparing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import functions as F

from esker.errors import Held, PartitionsMixed
from esker.load.lanes import large
from tests.folder import LASTING_SPARK, Folder

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def deliver(folder: Folder, name: str, rows: Sequence[tuple[int | str, str]]) -> None:
    """Put one file into the place of all others."""
    for old in (folder.path / "landing").iterdir():
        old.unlink()
    folder.write_csv(f"landing/{name}.csv", ["id", "v"], rows)


@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("deletes", ["soft", "hard"])
def test_sync_makes_the_table_what_the_source_is(make_folder: MakeFolder, lane: str, deletes: str) -> None:
    """A key that the source lacks is deleted and counted apart; the change log says so."""
    pipeline: dict[str, Any] = Folder.files_pipeline(
        mode="sync", key=["id"], lane=lane, deletes=deletes, guard={"max_delete": "50%"}
    )
    folder = make_folder(pipelines={"sales": pipeline})
    deliver(folder, "a", [(1, "a"), (2, "b"), (3, "c")])
    folder.run()
    deliver(folder, "b", [(1, "a"), (2, "x")])
    counts = folder.run().rows
    assert (counts.read, counts.unchanged, counts.updated, counts.missing) == (2, 1, 1, 1)
    rows = folder.rows("shop.sales", *(["id", "v", "deleted"] if deletes == "soft" else ["id", "v"]))
    if deletes == "soft":
        assert rows == [(1, "a", False), (2, "x", False), (3, "c", True)]
    else:
        assert rows == [(1, "a"), (2, "x")]
    log = folder.rows("shop.sales__changes", "_esker_changeset", "_esker_op", "id", "v")
    assert [row for row in log if row[0] == 2] == [(2, "delete", 3, "c"), (2, "update", 2, "x")]


@pytest.mark.parametrize("lane", ["small", "large"])
def test_sync_with_one_percent_of_the_rows_is_held(make_folder: MakeFolder, lane: str) -> None:
    """A source that suddenly holds one row in a hundred deletes nothing before a person has said so."""
    pipeline = Folder.files_pipeline(mode="sync", key=["id"], lane=lane, deletes="hard")
    folder = make_folder(pipelines={"sales": pipeline})
    rows = [(number, "v") for number in range(1000)]
    deliver(folder, "a", rows)
    folder.run()
    deliver(folder, "b", rows[:10])
    with pytest.raises(Held):
        folder.run()
    assert len(folder.rows()) == 1000
    folder.open().approve("sales")
    assert [row[0] for row in folder.rows("shop.sales", "id")] == list(range(10))


@pytest.mark.parametrize("few", [True, False])
def test_many_deletes_are_not_sent_to_every_executor(
    make_folder: MakeFolder, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark chooses how to join many deletes with the table: sent around, they must fit into each memory.

    Keys that are missing are numbered by their place: by arrival, they would have others a second time.
    """
    monkeypatch.setattr(large, "BROADCAST_ROWS", 1000 if few else 20)
    plans: list[str] = []
    last_rows = large.LargeBatch._last_rows

    def looked_at(batch: large.LargeBatch, *arguments: Any) -> Any:
        rows = last_rows(batch, *arguments)
        shown: Any = rows
        plans.append(shown._jdf.queryExecution().executedPlan().toString())
        return rows

    monkeypatch.setattr(large.LargeBatch, "_last_rows", looked_at)
    pipeline: dict[str, Any] = Folder.files_pipeline(
        mode="sync", key=["id"], lane="large", deletes="hard", guard={"max_delete": "100%"}
    )
    conf = LASTING_SPARK["conf"] | {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    folder = make_folder(pipelines={"sales": pipeline}, spark=LASTING_SPARK | {"conf": conf})
    deliver(folder, "a", [(number, "v") for number in range(1000)])
    folder.run()
    deliver(folder, "b", [(number, "w") for number in range(500, 510)])
    counts = folder.run().rows
    assert (counts.missing, counts.updated) == (990, 10)
    assert folder.rows("shop.sales", "id", "v") == [(number, "w") for number in range(500, 510)]
    log = folder.rows("shop.sales__changes", "_esker_op", "id", "v")
    gone = {number for number in range(1000) if number not in range(500, 510)}
    assert {row[1] for row in log if row[0] == "delete"} == gone
    assert len(log) == 1000 + 990 + 10
    [plan] = plans
    assert "Join" in plan
    # Of the table's content, not of its narrow rows: Spark tells at the top what the kept rows are joined by.
    assert ("BroadcastHashJoin [_file" in plan) is few, plan
    assert "- monotonically_increasing_id" not in plan


def test_replace_holds_all_files_and_nothing_else(make_folder: MakeFolder) -> None:
    """A file that came, and one that went, make another whole; without either nothing is done."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="replace")})
    folder.write_csv("landing/a.csv", ["id", "v"], [(1, "a"), (2, "b")])
    folder.run()
    assert folder.open().plan(["sales"])[0].is_empty
    folder.write_csv("landing/b.csv", ["id", "v"], [(3, "c")])
    folder.run()
    assert folder.rows() == [(1, "a"), (2, "b"), (3, "c")]
    (folder.path / "landing/a.csv").unlink()
    folder.run()
    assert folder.rows() == [(3, "c")]


@pytest.mark.parametrize("lane", ["small", "large"])
def test_replace_with_a_key_tells_what_changed(make_folder: MakeFolder, lane: str) -> None:
    """A table that was swapped without a key is compared from now on; only what differs is written and told.

    Much may go at a time, but not everything.
    """
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="replace", lane=lane)})
    deliver(folder, "a", [(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    folder.run()
    folder.change(key=["id"])
    deliver(folder, "b", [(1, "a"), (2, "x"), (5, "e"), (5, "f"), ("", "lost")])
    counts = folder.run().rows
    assert (counts.inserted, counts.missing, counts.duplicates, counts.quarantined) == (1, 2, 1, 1)
    assert folder.rows("shop.sales", "id", "v") == [(1, "a"), (2, "x"), (5, "f")]
    log = folder.rows("shop.sales__changes", "_esker_op", "id", "v")
    assert {row for row in log if row[1] != 1} == {
        ("update", 2, "x"),
        ("delete", 3, "c"),
        ("delete", 4, "d"),
        ("insert", 5, "f"),
    }
    deliver(folder, "c", [(5, "f"), (2, "x"), (1, "b")])
    counts = folder.run().rows
    assert (counts.updated, counts.unchanged, counts.missing) == (1, 2, 0)
    deliver(folder, "d", [])
    with pytest.raises(Held):
        folder.run()
    assert folder.rows("shop.sales", "id", "v") == [(1, "b"), (2, "x"), (5, "f")]


def test_replace_partitions_leaves_the_others(make_folder: MakeFolder) -> None:
    """Only the partitions that the batch has rows for are swapped."""
    pipeline = Folder.files_pipeline(mode="replace_partitions", partition_by=["v"])
    folder = make_folder(pipelines={"sales": pipeline})
    folder.write_csv("landing/a.csv", ["id", "v"], [(1, "a"), (2, "a"), (3, "b")])
    folder.run()
    folder.write_csv("landing/b.csv", ["id", "v"], [(9, "a"), (10, "c")])
    folder.run()
    assert folder.rows() == [(10, "c"), (3, "b"), (9, "a")]


DAYS = ["id", "at", "v"]


def on(day: int | None, *numbers: int, v: str = "a") -> list[tuple[Any, ...]]:
    """Return rows of one day of January."""
    at = f"2026-01-{day:02} 08:00:00" if day is not None else ""
    return [(number, at, v if number % 2 else "b") for number in numbers]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ([], ["ADD PARTITION FIELD day(at)"], ["day(at)"]),
        (["day(at)"], ["ADD PARTITION FIELD bucket(4, id)"], ["day(at)", "bucket(4, id)"]),
        (["v"], ["DROP PARTITION FIELD v", "ADD PARTITION FIELD day(at)"], ["day(at)"]),
    ],
    ids=["unpartitioned to day", "day to day and bucket", "identity to day"],
)
def test_partitions_are_swapped_across_specs(
    make_folder: MakeFolder, before: list[str], changes: list[str], after: list[str], version: int
) -> None:
    """Exactly the rows of the batch's partitions go, also from files of an older spec that hold others.

    A file of which nothing stays goes as a whole.
    """
    columns = {"id": "bigint", "at": "timestamp", "v": "string"}
    keys: dict[str, Any] = {"columns": columns, "format_version": version}
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(partition_by=before, **keys)})
    stored = [*on(1, 1, 2, 3, 4), *on(2, 5, 6, 7, 8), *on(None, 9, 10)]
    alone = on(1, 11, 13, 15)
    for name, rows in (("a", stored), ("b", alone)):
        folder.write_csv(f"landing/{name}.csv", DAYS, rows)
        folder.run()
    spark = folder.open().engine.spark
    for change in changes:
        spark.sql(f"ALTER TABLE lake.shop.sales {change}")
    folder.change(mode="replace_partitions", partition_by=after)
    bucket = {
        row.id: row.bucket
        for row in spark.sql("SELECT id, lake.system.bucket(4, id) AS bucket FROM range(99)").collect()
    }

    def partition(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[1], bucket[row[0]] if len(after) > 1 else 0

    expected = [*stored, *alone]
    for name, batch in (("c", on(1, 21)), ("d", [*on(2, 22), *on(None, 23)]), ("e", on(2, 24, 26, 27, 28))):
        swapped = {partition(row) for row in batch}
        expected = [row for row in expected if partition(row) not in swapped] + batch
        folder.write_csv(f"landing/{name}.csv", DAYS, batch)
        assert folder.run().rows.inserted == len(batch)
        shown = (
            folder.open().table("shop.sales").select("id", F.date_format("at", "yyyy-MM-dd HH:mm:ss"), "v")
        )
        found = sorted((row[0], row[1] or "", row[2]) for row in shown.collect())
        assert found == sorted(expected)
        if name == "c" and not before:
            files = spark.sql(
                "SELECT record_count FROM lake.shop.sales.data_files WHERE spec_id = 0"
            ).collect()
            assert [row[0] for row in files] == [len(stored)]


def test_version_1_cannot_swap_some_rows_of_a_file(make_folder: MakeFolder) -> None:
    """It has no deletes of rows: nothing is changed. Files that go as a whole are swapped."""
    columns = {"id": "bigint", "at": "timestamp", "v": "string"}
    pipeline = Folder.files_pipeline(columns=columns, mode="replace_partitions", partition_by=["day(at)"])
    folder = make_folder(pipelines={"sales": pipeline})
    engine = folder.open().engine
    engine.open_catalog("lake")
    for statement in (
        "CREATE NAMESPACE lake.shop",
        "CREATE TABLE lake.shop.sales (id bigint, at timestamp, v string) USING iceberg "
        "TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO lake.shop.sales SELECT 1, timestamp '2026-01-01 08:00:00', 'a'",
        "INSERT INTO lake.shop.sales SELECT /*+ COALESCE(1) */ id, timestamp '2026-01-02 08:00:00' + "
        "make_dt_interval(id - 2), 'a' FROM range(2, 4)",
        "ALTER TABLE lake.shop.sales ADD PARTITION FIELD day(at)",
    ):
        engine.spark.sql(statement)
    folder.write_csv("landing/a.csv", DAYS, on(1, 21))
    folder.run()
    assert folder.rows("shop.sales", "id") == [(2,), (21,), (3,)]
    folder.write_csv("landing/b.csv", DAYS, on(2, 22))
    with pytest.raises(PartitionsMixed):
        folder.run()
    assert folder.rows("shop.sales", "id") == [(2,), (21,), (3,)]
