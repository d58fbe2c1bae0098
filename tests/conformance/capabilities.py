"""What every catalog and store must be able to do. Each function tries one thing, and looks at the tables."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from esker.errors import Fenced, MetadataDamaged, RepairOutdated
from esker.events import Event, Reached, Step
from esker.ledger.change_log import OP
from esker.pipeline.reading import ReadingProject
from esker.recover.repair import Rewrite
from tests.conformance.lakes import Lake
from tests.folder import Folder
from tests.load.works import LANES, QUARANTINE, WORKS, Works, at
from tests.recover.damage import cut_metadata

FIRST = [{"id": number, "at": 1, "name": f"stone {number}"} for number in range(6)]
NAMES = {number: f"stone {number}" for number in range(6)}


def names(works: Works) -> dict[int, str]:
    """Return the table as names by id."""
    return {id: row["name"] for id, row in works.rows().items()}


def works_of(lake: Lake, path: Path, **keys: Any) -> Works:
    """Return the table `shop.works`, loaded by key, of a project on the lake."""
    return Works(path, lake.project, **{"order_by": "at", "deletes": "hard", **keys})


def sales_of(lake: Lake, path: Path, **keys: Any) -> Folder:
    """Return a project on the lake that appends files to `shop.works`."""
    return Folder(
        path, **lake.project, pipelines={"works": Folder.files_pipeline(table="shop.works", **keys)}
    )


def create(lake: Lake, path: Path) -> None:
    """Namespace and table are made by the first run, with their layout; a second changes nothing."""
    folder = sales_of(lake, path, partition_by=["day(made)"], sort_by=["id"])
    folder.write_csv("landing/a.csv", ["id", "made"], [(1, "2026-01-02"), (2, "2026-02-03")])
    folder.run("works")
    project = folder.open()
    plan = project.plan(["works"])[0]
    assert plan.is_empty, plan.changes
    spark = project.engine.spark
    assert "shop" in [row.namespace for row in spark.sql("SHOW NAMESPACES IN lake").collect()]
    partitions = spark.sql(f"SELECT partition.made_day d FROM {WORKS}.partitions").collect()
    assert sorted(str(row.d) for row in partitions) == ["2026-01-02", "2026-02-03"]


def append(lake: Lake, path: Path) -> None:
    """Each file is loaded once; another machine without any state goes on where the ledger is."""
    folder = sales_of(lake, path / "one")
    folder.write_csv("landing/a.csv", ["id"], [(1,), (2,)])
    assert folder.run("works").rows.inserted == 2
    folder.lose_state()
    assert folder.run("works").rows.read == 0
    folder.write_csv("landing/b.csv", ["id"], [(3,)])
    assert folder.run("works").rows.inserted == 1
    assert folder.rows("shop.works") == [(1,), (2,), (3,)]


def upsert(lake: Lake, path: Path) -> None:
    """Inserts, updates, deletes and undeletes, by this process and by Spark."""
    for number, lane in enumerate(LANES):
        works = works_of(lake, path / lane, lane=lane)
        moment = 10 * number
        works.load([row | {"at": moment} for row in FIRST])
        done = works.load(
            [
                {"id": 1, "at": moment + 2, "name": "agate"},
                {"id": 2, "at": moment + 2, "name": None, "deleted": True},
                {"id": 7, "at": moment + 1, "name": "chalk"},
            ]
        )
        assert (done.rows.updated, done.rows.deleted) == (1, 1)
        assert names(works) == {0: "stone 0", 1: "agate", 7: "chalk"} | {
            id: f"stone {id}" for id in (3, 4, 5)
        }
        works.load([{"id": 2, "at": moment + 3, "name": "back"}, {"id": 1, "at": moment, "name": "late"}])
        assert names(works)[2] == "back"
        assert names(works)[1] == "agate", "an older row does not win"


def sync(lake: Lake, path: Path) -> None:
    """What the source no longer has is deleted."""
    works = Works(path, lake.project, mode="sync", deletes="hard", guard={"max_delete": "90%"})
    works.load([{"id": row["id"], "name": row["name"]} for row in FIRST])
    done = works.load([{"id": 1, "name": "agate"}, {"id": 3, "name": "stone 3"}])
    assert (done.rows.updated, done.rows.missing) == (1, 4)
    assert names(works) == {1: "agate", 3: "stone 3"}


def evolve(lake: Lake, path: Path) -> None:
    """Columns are added, widened, renamed and dropped, without a file being written anew."""
    folder = sales_of(lake, path, columns={"amount": "int", "note": "string"})
    folder.write_csv("landing/a.csv", ["id", "amount", "note"], [(1, 7, "x")])
    folder.run("works")
    files = folder.open().engine.spark.sql(f"SELECT file_path FROM {WORKS}.files").collect()
    folder.change(
        "works",
        columns={"price": {"type": "bigint", "renamed_from": "amount"}, "fresh": "string"},
        drop_columns=["note"],
    )
    project = folder.open()
    folder.write_csv("landing/b.csv", ["id", "price", "fresh"], [(2, 2**40, "y")])
    project.apply(project.plan(["works"]))
    folder.run("works")
    assert folder.rows("shop.works", "id", "price", "fresh") == [(1, 7, None), (2, 2**40, "y")]
    kept = folder.open().engine.spark.sql(f"SELECT file_path FROM {WORKS}.files").collect()
    assert {row.file_path for row in files} < {row.file_path for row in kept}


def publish(lake: Lake, path: Path) -> None:
    """Two runs of a pipeline meet: one publishes, the other is fenced, and every row is there once."""
    first, second = sales_of(lake, path / "one"), sales_of(lake, path / "two")
    (second.path / "landing").rmdir()
    (second.path / "landing").symlink_to(first.path / "landing")
    first.write_csv("landing/a.csv", ["id"], [(1,)])
    first.run("works")
    first.write_csv("landing/b.csv", ["id"], [(2,), (3,)])
    with pytest.raises(Fenced) as caught:
        first.run("works", at(Step.BEFORE_COMMIT, lambda: second.run("works")))
    assert caught.value.landed == "no"
    assert first.rows("shop.works") == [(1,), (2,), (3,)]
    assert first.run("works").rows.read == 0


def race(lake: Lake, path: Path, rounds: int = 6) -> None:
    """Two pipelines commit to one table in the same moment, again and again: no commit is lost."""
    folders = [
        Folder(path / name, **lake.project, pipelines={name: Folder.files_pipeline(table="shop.works")})
        for name in ("left", "right")
    ]
    folders[0].write_csv("landing/0.csv", ["id"], [(0,)])
    folders[0].run("left")
    gate = threading.Barrier(2, timeout=60)

    def together(folder: Folder, name: str, number: int) -> None:
        met = False

        def listen(event: Event) -> None:
            nonlocal met
            if isinstance(event, Reached) and event.step is Step.BEFORE_COMMIT and not met:
                met = True
                gate.wait()

        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run(name, listen)

    with ThreadPoolExecutor(2) as pool:
        for round in range(rounds):
            numbers = (2 * round + 1, 2 * round + 2)
            list(pool.map(together, folders, ("left", "right"), numbers))
    assert folders[0].rows("shop.works") == sorted(((number,) for number in range(2 * rounds + 1)), key=repr)


def lost_answer(lake: Lake, path: Path) -> None:
    """The catalog commits and its answer is lost: the batch is recognised, not repeated, not given up."""
    cutting = lake.cutting
    assert cutting is not None
    folder = sales_of(lake, path)
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run("works")
    for number in (2, 3):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        done = folder.run("works", at(Step.BEFORE_COMMIT, partial(cutting.lose_answer_to, lake.commit)))
        assert not cutting.is_waiting, "no request was met"
        assert (done.status, done.rows.inserted) == ("succeeded", 1)
    assert folder.rows("shop.works") == [(1,), (2,), (3,)]
    written = folder.open().engine.spark.sql(f"SELECT count(*) n FROM {WORKS}.files").collect()
    assert written[0].n == 3, "a batch was written twice"


def change_log(lake: Lake, path: Path) -> None:
    """The log alone tells the table, each changeset once."""
    works = works_of(lake, path)
    works.load(FIRST)
    works.load([{"id": 1, "at": 2, "name": "agate"}, {"id": 2, "at": 2, "name": None, "deleted": True}])
    assert works.ops(2) == {1: "update", 2: "delete"}
    assert {id: row["name"] for id, row in works.replayed().items()} == names(works)
    assert works.outbox() == [] or works.outbox()[-1]["n"] == 2


def deliver(lake: Lake, path: Path) -> None:
    """A consumer is told each change once, though state and old snapshots are lost; a reindex tells all."""
    folder = _consumed(lake, path)
    write = folder.write_jsonl
    write("landing/1.jsonl", FIRST)
    folder.run("works")
    assert folder.open().deliver("news").rows.sent == 6
    assert _told(folder) == {(str(id), "insert", name) for id, name in NAMES.items()}

    write("landing/2.jsonl", [{"id": 7, "at": 2, "name": "chalk"}])
    folder.run("works")
    if lake.is_keyed:
        write("landing/3.jsonl", [{"id": 1, "at": 3, "name": "agate"}, {"id": 2, "at": 3, "gone": True}])
        folder.run("works")
    project = folder.open()
    log = "shop.works__changes" if lake.is_keyed else "shop.works"
    if lake.expires:
        project.engine.spark.sql(
            f"CALL lake.system.expire_snapshots(table => '{log}', retain_last => 1, "
            "older_than => TIMESTAMP '2999-01-01 00:00:00')"
        ).collect()
    folder.lose_state()
    project = folder.open()
    again = project.deliver("news")
    changed: set[tuple[str, str, str | None]] = {("7", "insert", "chalk")}
    if lake.is_keyed:
        changed |= {("1", "update", "agate"), ("2", "delete", None)}
    assert again.rows.rows == len(changed)
    assert again.since == 1 or not lake.is_keyed, "of a table without a log, a snapshot is remembered"
    assert _told(folder) == changed
    assert project.deliver("news").rows.rows == 0
    tags = project.engine.spark.sql(f"SELECT name FROM lake.{log}.refs WHERE type = 'TAG'").collect()
    assert "esker-consumer-shop-news" in {row.name for row in tags}

    project.reindex("news")
    rows = {(id, name) for id, name in folder.rows("shop.works", "id", "name")}
    assert {(int(id), name) for id, _, name in _told(folder)} == rows
    assert len(rows) == (6 if lake.is_keyed else 7)


def _consumed(lake: Lake, path: Path) -> Folder:
    """Return a project on the lake whose table is told to a folder, by Spark where there are several."""
    to = {"type": "files", "path": "told"}
    news: dict[str, Any] = {"from": "works", "to": to, "batch": {"spark": 3}}
    keys: dict[str, Any] = {"columns": {"id": "bigint", "at": "bigint", "name": "string", "gone": "boolean"}}
    if lake.is_keyed:
        keys |= {"mode": "upsert", "key": ["id"], "order_by": "at", "deletes": "hard", "delete_when": "gone"}
    else:
        news["id"] = ["id"]
    pipeline = Folder.files_pipeline("landing/*.jsonl", "jsonl", "shop.works", **keys)
    return Folder(path, **lake.project, pipelines={"works": pipeline}, consumers={"news": news})


def _told(folder: Folder) -> set[tuple[str, str, str | None]]:
    """Return id, operation and name of what was told since this was asked last; nothing was told twice."""
    files = list((folder.path / "told").glob("*.jsonl"))
    messages = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    told = {(each["id"], each["op"], (each.get("body") or {}).get("name")) for each in messages}
    assert len(told) == len(messages)
    for file in files:
        file.unlink()
    return told


def read_without_spark(lake: Lake, path: Path) -> None:
    """Changes, and all rows in tasks, are read without Spark and Java, and are those that Spark sees."""
    folder = _consumed(lake, path)
    folder.write_jsonl("landing/1.jsonl", FIRST)
    folder.run("works")
    before = ReadingProject.at(folder.path).changes("shop.works")
    folder.write_jsonl("landing/2.jsonl", [{"id": 1, "at": 2, "name": "agate"}, {"id": 7, "at": 2}])
    folder.run("works")
    reading = ReadingProject.at(folder.path)
    changes = reading.changes("shop.works", since=before.until)
    expected = (
        {(1, "update", "agate"), (7, "insert", None)}
        if lake.is_keyed
        else {(1, "insert", "agate"), (7, "insert", None)}
    )
    assert {(row["id"], row[OP], row["name"]) for row in changes.to_arrow().to_pylist()} == expected
    tasks = [row for task in reading.reindex_tasks("shop.works") for row in task.to_arrow().to_pylist()]
    found = sorted(((row["id"], row["at"], row["name"]) for row in tasks), key=repr)
    assert found == folder.rows("shop.works", "id", "at", "name")
    assert len(found) == (7 if lake.is_keyed else 8)


def quarantine(lake: Lake, path: Path) -> None:
    """A row that cannot be loaded is put aside with the reason, and the others are loaded."""
    folder = sales_of(lake, path, columns={"amount": "int"}, bad_rows="quarantine")
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 10), (2, "much"), (3, 30)])
    done = folder.run("works")
    assert (done.rows.inserted, done.rows.quarantined, done.log_lag) == (2, 1, 0)
    [bad] = folder.open().engine.spark.table(QUARANTINE).collect()
    assert "much" in str(bad)
    assert folder.rows("shop.works", "id", "amount") == [(1, 10), (3, 30)]


def _several(lake: Lake, path: Path) -> Folder:
    folder = sales_of(lake, path)
    for number in range(6):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run("works")
    return folder


def expire(lake: Lake, path: Path) -> None:
    """Iceberg's own procedure removes old snapshots, and runs go on."""
    folder = _several(lake, path)
    spark = folder.open().engine.spark
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works', retain_last => 1, "
        "older_than => TIMESTAMP '2999-01-01 00:00:00')"
    ).collect()
    assert spark.sql(f"SELECT count(*) n FROM {WORKS}.snapshots").collect()[0].n == 1
    folder.write_csv("landing/more.csv", ["id"], [(6,)])
    folder.run("works")
    assert folder.rows("shop.works") == [(number,) for number in range(7)]


def compact(lake: Lake, path: Path) -> None:
    """Iceberg's own procedure makes few files of many, and runs go on."""
    folder = _several(lake, path)
    spark = folder.open().engine.spark
    spark.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))"
    ).collect()
    assert spark.sql(f"SELECT count(*) n FROM {WORKS}.files").collect()[0].n == 1
    folder.write_csv("landing/more.csv", ["id"], [(6,)])
    folder.run("works")
    assert folder.rows("shop.works") == [(number,) for number in range(7)]


def version_3(lake: Lake, path: Path) -> None:
    """Rows are deleted by deletion vectors."""
    works = works_of(lake, path, format_version=3)
    works.load(FIRST)
    works.load([{"id": 1, "at": 2, "name": "agate"}])
    assert names(works) == NAMES | {1: "agate"}
    kinds = works.sql(f"SELECT file_format FROM {WORKS}.delete_files")
    assert [row.file_format for row in kinds] == ["PUFFIN"]


def fsck(lake: Lake, path: Path) -> None:
    """A metadata file that is cut off is found and repaired, and the next run loads what is lost by that."""
    folder = sales_of(lake, path)
    for number in (1, 2):
        folder.write_csv(f"landing/{number}.csv", ["id"], [(number,)])
        folder.run("works")
    project = folder.open()
    found, plan = cut_metadata(project, "lake", "shop.works")
    if not isinstance(plan, Rewrite):  # else the server has kept the metadata, and all is there
        with pytest.raises(MetadataDamaged):
            folder.run("works")
    project.repair(found, plan)
    assert folder.open().fsck().is_clean
    assert folder.rows("shop.works") == ([(1,), (2,)] if isinstance(plan, Rewrite) else [(1,)])
    folder.run("works")
    assert folder.rows("shop.works") == [(1,), (2,)]
    with pytest.raises(RepairOutdated):
        project.repair(found, plan)
    assert folder.rows("shop.works") == [(1,), (2,)]


def drop(lake: Lake, path: Path) -> None:
    """Dropped tables are gone, and the next run begins anew."""
    folder = sales_of(lake, path)
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run("works")
    spark = folder.open().engine.spark
    for table in (WORKS, f"{WORKS}__files"):
        spark.sql(f"DROP TABLE {table}")
    assert spark.sql("SHOW TABLES IN lake.shop").collect() == []
    assert folder.run("works").rows.inserted == 1
    assert folder.rows("shop.works") == [(1,)]


CAPABILITIES: dict[str, Callable[[Lake, Path], None]] = {
    "create": create,
    "append": append,
    "upsert": upsert,
    "sync": sync,
    "evolve": evolve,
    "publish": publish,
    "race": race,
    "lost answer": lost_answer,
    "change log": change_log,
    "deliver": deliver,
    "read without Spark": read_without_spark,
    "quarantine": quarantine,
    "expire": expire,
    "compact": compact,
    "version 3": version_3,
    "fsck": fsck,
    "drop": drop,
}
"""By the words of the page."""
