"""The tasks of a snapshot have each of its live rows once, whatever lies in the table, wherever they go."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from esker.engine.iceberg.table import TableId
from esker.errors import NotWithoutSpark, TableNotFound, TaskNotOpened, UnknownPoint
from esker.pipeline.api import OpenProject
from esker.reading.tasks import ReindexTask
from tests.folder import Folder
from tests.load.works import WORKS, Make
from tests.reading.deletes_by_value import delete_by_value
from tests.reading.watching import data_files, opened_files

pytestmark = pytest.mark.spark

TABLE = TableId("lake", "shop.works")


def read(tasks: Sequence[ReindexTask]) -> Counter[str]:
    """Return the rows of tasks, however often each is there."""
    return Counter(_plain(row) for task in tasks for row in task.to_arrow().to_pylist())


def spark_rows(project: OpenProject, relation: str = WORKS, where: str = "true") -> Counter[str]:
    frame = project.engine.spark.sql(f"SELECT * FROM {relation} WHERE {where}")
    return Counter(_plain(row.asDict(recursive=True)) for row in frame.collect())


def _plain(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=lambda value: str(value)[:19])


def titles(*numbers: int, title: str = "a", **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, "title": title, **more} for number in numbers]


@pytest.mark.parametrize(("lane", "version"), [("small", 2), ("small", 3), ("large", 3)])
def test_rows_that_were_replaced_and_deleted(make: Make, lane: str, version: int) -> None:
    """Position deletes and deletion vectors count; rows that are marked as deleted come when asked for."""
    works = make(lane=lane, format_version=version, partition_by=["bucket(4, id)"])
    works.load(titles(*range(50), deleted=False))
    works.load(titles(*range(0, 50, 3), title="b", deleted=False))
    works.load(titles(*range(1, 50, 5), deleted=True))
    works.load(titles(*range(60, 70), title="c", deleted=False))
    tasks = works.project.reindex_tasks("shop.works", size=1)
    assert read(tasks) == spark_rows(works.project, where="NOT deleted")
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(len(task.files) == 1 for task in tasks)
    assert sum(task.rows for task in tasks) >= 50
    everything = works.project.reindex_tasks("shop.works", with_deleted=True)
    assert len(everything) == 1
    assert read(everything) == spark_rows(works.project)
    if version == 3:
        assert everything[0].rows == 60
    frames = [row for task in tasks for row in task.to_spark().collect()]
    assert Counter(_plain(row.asDict(recursive=True)) for row in frames) == read(tasks)


def test_versions_of_the_past_are_left_out(make: Make) -> None:
    """Tasks have the rows that a reindex sends: what is current; the past, when it is asked for."""
    works = make(lane="small", mode="scd2", order_by="at", versions={"is_current": "is_now"})
    works.load([{"id": n, "at": at, "title": f"{at}", "deleted": False} for n in (1, 2, 3) for at in (1, 5)])
    works.load([{"id": 2, "at": 9, "title": "", "deleted": True}])
    tasks = works.project.reindex_tasks("shop.works", size=1)
    assert sum(read(tasks).values()) == 2
    assert read(tasks) == spark_rows(works.project, where="is_now")
    frames = [row for task in tasks for row in task.to_spark().collect()]
    assert Counter(_plain(row.asDict(recursive=True)) for row in frames) == read(tasks)
    elsewhere = [works.project.reindex_task(json.loads(json.dumps(task.as_json()))) for task in tasks]
    assert read(elsewhere) == read(tasks)
    whole = works.project.reindex_tasks("shop.works", with_past=True)
    assert read(whole) == spark_rows(works.project)
    assert sum(read(whole).values()) == 6
    polars = [row for task in tasks for row in task.to_polars().to_dicts()]
    assert Counter(map(_plain, polars)) == read(tasks)


def test_an_older_snapshot(make: Make) -> None:
    """A snapshot is pinned: what came later is not in it, nor are columns of later."""
    works = make(lane="small")
    works.load(titles(1, 2))
    (pinned,) = works.snapshots()
    works.load(titles(2, title="b", more="x"))
    tasks = works.project.reindex_tasks("shop.works", pinned)
    assert read(tasks) == spark_rows(works.project, f"{WORKS} VERSION AS OF {pinned}")
    assert "more" not in tasks[0].schema.names
    works.sql(f"DELETE FROM {WORKS}")
    assert sum(read(tasks).values()) == 2
    with pytest.raises(UnknownPoint):
        works.project.reindex_tasks("shop.works", 1234567890123456789)
    with pytest.raises(TableNotFound):
        works.project.reindex_tasks("shop.nothing")


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_an_evolved_table(make: Make, format: str) -> None:
    """Columns that were added, renamed, widened, moved and dropped, also inside others; two partitionings."""
    works = make(lane="large")
    works.change(format=format)
    place = {"town": "Ulm", "no": 1}
    works.load(
        [{"id": i, "title": "a", "size": 1, "place": place, "tags": ["x"], "gone": "y"} for i in range(9)]
    )
    for change in (
        "RENAME COLUMN title TO name",
        "ALTER COLUMN size TYPE bigint",
        "DROP COLUMN gone",
        "ADD COLUMN gone int",
        "ADD COLUMN place.street string",
        "RENAME COLUMN place.town TO city",
        "ALTER COLUMN tags FIRST",
        "ADD PARTITION FIELD bucket(2, id)",
    ):
        works.sql(f"ALTER TABLE {WORKS} {change}")
    works.sql(
        f"INSERT INTO {WORKS} (id, name, size, place, tags, gone) "
        "VALUES (10, 'n', 5000000000, named_struct('city', 'Bonn', 'no', 2, 'street', 's'), array('z'), 7)"
    )
    works.sql(f"DELETE FROM {WORKS} WHERE id = 3")
    tasks = works.project.reindex_tasks("shop.works")
    assert all(path.endswith(format) for task in tasks for path in task.files)
    assert read(tasks) == spark_rows(works.project)


def test_every_type(make: Make) -> None:
    """Values are those that Spark reads."""
    works = make(lane="large")
    works.project.engine.spark.sql(
        "SELECT 1L AS id, true AS b, 1.5D AS d, CAST(1.5 AS float) AS f, 12.30BD AS n, "
        "DATE '2026-01-31' AS day, "
        "TIMESTAMP '2026-01-31 10:00:00' AS at, TIMESTAMP_NTZ '2026-01-31 10:00:00' AS local, "
        "array(1, null) AS list, named_struct('a', array(named_struct('b', 'c'))) AS deep, 'é' AS text"
    ).createOrReplaceTempView("typed")
    works.load(works.project.engine.spark.table("typed"))
    assert read(works.project.reindex_tasks("shop.works")) == spark_rows(works.project)


def test_deletes_by_value(make: Make) -> None:
    """What another engine deleted by values is gone, also by a null, and what came later is not."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": None}, {"id": 3, "title": "c"}])
    delete_by_value(works.project.engine, TABLE, {"title": "a"}, {"title": None})
    works.sql(f"INSERT INTO {WORKS} (id, title) VALUES (4, 'a')")
    delete_by_value(works.project.engine, TABLE, {"id": 3, "title": "c"}, {"id": 4, "title": "b"})
    found = read(works.project.reindex_tasks("shop.works"))
    assert found == spark_rows(works.project)
    assert sum(found.values()) == 1
    works.sql(f"ALTER TABLE {WORKS} DROP COLUMN title")
    assert read(works.project.reindex_tasks("shop.works")) == spark_rows(works.project)


def test_a_file_of_deletes_by_value_is_read_once(make: Make) -> None:
    """Also when many data files of a task have it in common."""
    works = make(lane="small")
    for number in (1, 2, 3):
        works.load(titles(number))
    delete_by_value(works.project.engine, TABLE, {"id": 2})
    [task] = works.project.reindex_tasks("shop.works")
    assert len(task.files) == 3
    with opened_files() as opened:
        assert read([task]) == spark_rows(works.project)
    assert len(data_files(opened)) == len(set(data_files(opened))) == 4


def test_columns_that_stand_in_the_partition_only(make_folder: Callable[..., Folder]) -> None:
    """Files that were adopted may lack the columns that their folders are named after."""
    folder = make_folder()
    project = folder.open()
    project.engine.open_catalog("lake")
    spark = project.engine.spark
    place = folder.path / "old"
    rows = "VALUES (1, DATE '2026-01-01', 'x'), (2, DATE '2026-01-02', 'y') AS t(id, day, kind)"
    spark.sql(f"SELECT * FROM {rows}").write.partitionBy("day", "kind").parquet(str(place))
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql("CREATE TABLE lake.shop.works (id int, day date, kind string) PARTITIONED BY (day, kind)")
    spark.sql(f"CALL lake.system.add_files('shop.works', '`parquet`.`{place}`')")
    tasks = [_sent(project, task) for task in project.reindex_tasks("shop.works", size=1)]
    assert len(tasks) == 2
    assert read(tasks) == spark_rows(project)


def _sent(project: OpenProject, task: ReindexTask) -> ReindexTask:
    return project.reindex_task(json.loads(json.dumps(task.as_json())))


def test_tasks_travel(make: Make) -> None:
    """Pickled or as JSON, a task is read elsewhere: only its own files are opened, and no manifest."""
    works = make(lane="small", format_version=3, partition_by=["bucket(4, id)"])
    works.load(titles(*range(20)))
    works.load(titles(*range(5), title="b"))
    expected = read(works.project.reindex_tasks("shop.works"))
    tasks = works.project.reindex_tasks("shop.works", size=1)
    elsewhere = works.folder.open()
    with opened_files() as opened:
        assert read([_sent(elsewhere, task) for task in tasks]) == expected
    assert sorted(data_files(opened)) == sorted(path for task in tasks for path in task.files)
    assert not any(location.endswith(".avro") for location in opened)
    sent = pickle.loads(pickle.dumps(tasks[0]))
    assert sent == tasks[0]
    with pytest.raises(TaskNotOpened):
        sent.to_arrow()
    assert elsewhere.reindex_task(sent).to_arrow() == tasks[0].to_arrow()


def test_an_empty_table(make: Make) -> None:
    """A table without a row has no task, or tasks without rows."""
    works = make(lane="small")
    works.load(titles(1))
    works.sql(f"DELETE FROM {WORKS}")
    assert not read(works.project.reindex_tasks("shop.works"))


def test_a_catalog_of_folders(make_folder: Callable[..., Folder]) -> None:
    """Without a server, the newest metadata file is the table."""
    folder = make_folder(catalog={"type": "hadoop", "warehouse": "wh"})
    folder.write_csv("landing/1.csv", ["id", "name"], [(1, "a"), (2, "b")])
    folder.run()
    folder.write_csv("landing/2.csv", ["id", "name"], [(3, "c")])
    folder.run()
    project = folder.open()
    assert read(project.reindex_tasks("shop.sales")) == spark_rows(project, "lake.shop.sales")
    assert project.changes("shop.sales", since=1).to_arrow().column("id").to_pylist() == [3]
    with pytest.raises(TableNotFound):
        project.reindex_tasks("shop.nothing")


@pytest.mark.server
def test_a_rest_catalog_and_a_store(seaweedfs: Any, make: Make) -> None:
    """Tables behind a server, with their files in a bucket."""
    warehouse = seaweedfs.new_warehouse()
    works = make(
        project={"catalog": seaweedfs.catalog(warehouse), "store": seaweedfs.store()},
        lane="small",
        partition_by=["bucket(2, id)"],
    )
    works.load(titles(*range(10), deleted=False))
    works.load(titles(3, 4, title="b", deleted=False) + titles(5, deleted=True))
    assert read(works.project.reindex_tasks("shop.works")) == spark_rows(works.project, where="NOT deleted")
    changes = works.project.changes("shop.works", since=1)
    with opened_files() as opened:
        found = changes.to_arrow().to_pylist()
    assert {(row["id"], row["_esker_op"]) for row in found} == {(3, "update"), (4, "update"), (5, "delete")}
    assert data_files(opened) == changes.files


@pytest.mark.parametrize(
    ("catalog", "why"),
    [
        (
            {"type": "nessie", "uri": "http://127.0.0.1:1/api/v2", "warehouse": "wh"},
            "Nessie's own protocol",
        ),
        ({"type": "hadoop", "warehouse": "hdfs://nowhere:8020/wh"}, "HDFS"),
    ],
    ids=["nessie", "hdfs"],
)
def test_what_only_java_reads(tmp_path: Any, catalog: dict[str, Any], why: str) -> None:
    """It is refused with a reason, before anything is asked."""
    folder = Folder(tmp_path, catalog=catalog)
    for ask in (folder.open().changes, folder.open().reindex_tasks):
        with pytest.raises(NotWithoutSpark, match="without Spark") as caught:
            ask("shop.sales")
        assert why in caught.value.reason


def test_avro_files(make: Make) -> None:
    """Neither Arrow nor PyIceberg reads them as data files."""
    works = make(lane="large")
    works.change(format="avro")
    works.load(titles(1))
    with pytest.raises(NotWithoutSpark) as caught:
        works.project.reindex_tasks("shop.works")[0].to_arrow()
    assert "avro" in caught.value.reason
