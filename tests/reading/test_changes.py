"""Changes are read without Spark as Spark reads them: all, in order, and from their own files only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from esker.changes.ranges import AppendedRows, ChangeRange
from esker.engine.iceberg.table import TableId
from esker.errors import (
    ChangesDiverged,
    ChangesForgotten,
    ChangesMissing,
    NoChangeLog,
    SideTableForeign,
    UnknownPoint,
)
from esker.events import Step
from esker.ledger.change_log import CHANGESET, COMMITTED_AT, OP, ROW, RUN
from esker.ledger.retention import trim
from esker.pipeline.changes import read_changes
from tests.folder import Folder
from tests.ledger.test_change_log import BATCHES
from tests.load.works import CHANGES, WORKS, Make, Row, Works, at, large_in_soak
from tests.reading.watching import data_files, manifests_among, opened_files

pytestmark = pytest.mark.spark

LOG = TableId("lake", "shop.works__changes")
TABLE = TableId("lake", "shop.works")
SALES = "lake.shop.sales"


class Stopped(BaseException):
    """The process stops in the middle: nobody catches this."""


def stop() -> None:
    raise Stopped("here")


@pytest.fixture
def works(make: Make) -> Works:
    """A table with four changesets; the last brings a column."""
    works = make(lane="small", order_by="at")
    for batch in BATCHES:
        works.load(batch)
    return works


def rows(changes: ChangeRange) -> list[Row]:
    """Return changes as Spark would give them."""
    return [{name: _naive(value) for name, value in row.items()} for row in changes.to_arrow().to_pylist()]


def _naive(value: Any) -> Any:
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value


def logged(works: Works, since: int = 0, until: int = 99) -> list[Row]:
    return [row for row in works.log() if since < row[CHANGESET] <= until]


@large_in_soak
def test_changes_are_those_of_the_log(make: Make, lane: str) -> None:
    """Every column of every change is as Spark reads it, and each changeset by itself, too."""
    works = make(lane=lane, order_by="at")
    for batch in BATCHES:
        works.load(batch)
    changes = works.project.changes("shop.works")
    assert (changes.since, changes.until) == (0, 4)
    assert rows(changes) == works.log()
    assert changes.count() == len(works.log())
    for number in range(1, 5):
        assert rows(works.project.changes("shop.works", number - 1, number)) == logged(
            works, number - 1, number
        )
    assert [row.asDict() for row in changes.to_spark().orderBy(CHANGESET, ROW).collect()] == works.log()


def test_a_changeset_is_the_same_after_later_ones(make: Make) -> None:
    """What changeset 1 did is read after changeset 2 as before it."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}, {"id": 2, "title": "a"}])
    before = rows(works.project.changes("shop.works"))
    works.load([{"id": 1, "title": "b"}])
    assert rows(works.project.changes("shop.works", until=1)) == before
    assert [row["title"] for row in before] == ["a", "a"]


def test_only_files_of_the_range_are_opened(works: Works) -> None:
    """Of the log, the newest list, the manifest of that changeset and its file; of the table, no file."""
    for number in range(2, 5):
        changes = works.project.changes("shop.works", number - 1, number)
        with opened_files() as opened:
            assert rows(changes) == logged(works, number - 1, number)
        assert data_files(opened) == changes.files
        assert len(changes.files) == 1
        assert len(manifests_among(opened)) == 1
        assert len(opened) == 3
        assert all("works__changes" in location for location in opened)


def test_merged_manifests_are_told_apart_by_bounds(make: Make) -> None:
    """A manifest of many changesets is opened, and of its files only those of the range."""
    works = make(lane="small")
    works.load([{"id": 0, "title": "0"}])
    works.sql(f"ALTER TABLE {CHANGES} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge'='2')")
    for number in range(1, 6):
        works.load([{"id": number, "title": str(number)}])
    works.sql("CALL lake.system.rewrite_manifests('shop.works__changes')")
    with opened_files() as opened:
        assert [row["id"] for row in rows(works.project.changes("shop.works", 2, 4))] == [2, 3]
    assert len(data_files(opened)) == 2


def test_a_compacted_log_with_expired_snapshots(works: Works) -> None:
    """Another engine put all changes into one file and expired what was before: they are read from there."""
    before = works.log()
    works.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.works__changes', "
        "options => map('min-input-files', '2'))"
    )
    assert rows(works.project.changes("shop.works", 1, 3)) == [
        row for row in before if 1 < row[CHANGESET] <= 3
    ]
    works.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works__changes', retain_last => 1, "
        f"older_than => TIMESTAMP '{datetime.now() + timedelta(days=1)}')"
    )
    assert rows(works.project.changes("shop.works")) == before
    assert rows(works.project.changes("shop.works", since=2, until=3)) == logged(works, 2, 3)
    assert works.project.changes("shop.works", since=2, until=3).count() == len(logged(works, 2, 3))
    works.load([{"id": 0, "at": 9, "title": "z", "deleted": False, "more": "y"}])
    with opened_files() as opened:
        assert [row["title"] for row in rows(works.project.changes("shop.works", since=4))] == ["z"]
    assert len(data_files(opened)) == 1


def test_points_mean_what_they_mean_to_spark(works: Works) -> None:
    """Changesets, snapshots and times lead to the same ranges, also when old snapshots are expired."""
    snapshots = works.snapshots()
    times = sorted({row[COMMITTED_AT].astimezone(UTC) for row in works.log()})
    just_before = [moment - timedelta(microseconds=1) for moment in times]
    points = [*range(5), *snapshots, *times, *just_before, str(snapshots[1]), times[1].isoformat(), "2"]

    def compare() -> None:
        for point in points:
            mine = works.project.changes("shop.works", since=point)
            spark = read_changes(works.project.engine, TABLE, point, None, 100)
            assert (mine.since, mine.until) == (spark.since, spark.until), point
            assert works.project.read_changes("shop.works", since=point, limit=100) == spark

    compare()
    works.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.works', retain_last => 1, "
        f"older_than => TIMESTAMP '{datetime.now() + timedelta(days=1)}')"
    )
    points = [*times, *just_before]
    compare()
    for point in ("yesterday", 1234567890123456789):
        with pytest.raises(UnknownPoint):
            works.project.changes("shop.works", since=point)
    table = works.project.changes("shop.works").position["table"]
    with pytest.raises(ChangesDiverged, match="do not continue"):
        works.project.changes("shop.works", since={"table": table, "snapshot": 1})


@large_in_soak
def test_changes_that_a_killed_run_owes(make: Make, lane: str) -> None:
    """They are decided: they are read from where they were staged, behind what is in the log."""
    works = make(lane=lane)
    works.load([{"id": 1, "title": "a"}])
    with pytest.raises(Stopped):
        works.load([{"id": 1, "title": "b"}, {"id": 2, "title": "b"}], at(Step.BEFORE_LOG, stop))
    assert {row[CHANGESET] for row in works.log()} == {1}
    owed = works.project.changes("shop.works")
    assert owed.until == 2
    found = rows(owed)
    assert [(row[CHANGESET], row["id"], row[OP]) for row in found] == [
        (1, 1, "insert"),
        (2, 1, "update"),
        (2, 2, "insert"),
    ]
    assert owed.count() == 3
    assert rows(works.project.changes("shop.works", since=1)) == found[1:]
    works.load([{"id": 3, "title": "c"}])
    assert rows(works.project.changes("shop.works", until=2)) == found == logged(works, 0, 2)


def test_staged_changes_that_are_gone(make: Make) -> None:
    """What cannot be read is never left out silently; what lies before it can be read."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}])
    with pytest.raises(Stopped):
        works.load([{"id": 1, "title": "b"}], at(Step.BEFORE_LOG, stop))
    log = json.loads(works.properties()["esker.log"])
    ((name, _),) = works.outbox()[-1]["f"]
    Path(f"{log['location'].removeprefix('file:')}/data/{name}").unlink()
    with pytest.raises(ChangesMissing, match="changeset 2"):
        works.project.changes("shop.works").to_arrow()
    assert works.project.changes("shop.works", until=1).count() == 1
    works.load([{"id": 2, "title": "c"}])  # makes it anew from the table
    assert [row["title"] for row in rows(works.project.changes("shop.works", 1, 2))] == ["b"]


def test_a_gap_is_an_error(make: Make) -> None:
    """Changes that were made while the log was off are no part of any range."""
    works = make(lane="small")
    works.load([{"id": 1, "title": "a"}])
    works.change(changes="off")
    works.load([{"id": 1, "title": "b"}])
    works.change(changes="on")
    works.load([{"id": 1, "title": "c"}])
    for since in (0, 1):
        with pytest.raises(ChangesMissing, match="changeset 2") as caught:
            works.project.changes("shop.works", since=since)
        assert (caught.value.first, caught.value.last) == (2, 2)
    assert works.project.changes("shop.works", until=1).count() == 1
    assert [row["title"] for row in rows(works.project.changes("shop.works", since=2))] == ["c"]


def test_forgotten_changes(works: Works) -> None:
    """What was taken out of the log is asked for in vain; without a point, what is there is read."""
    trim(works.project.engine, LOG, timedelta(days=30), datetime.now(UTC) + timedelta(days=31))
    works.load([{"id": 0, "at": 9, "title": "z", "deleted": False, "more": None}])
    with pytest.raises(ChangesForgotten, match="changeset 2"):
        works.project.changes("shop.works", since=1)
    changes = works.project.changes("shop.works")
    assert (changes.since, changes.until, changes.count()) == (4, 5, 1)


def test_a_log_that_was_made_anew_or_rolled_back(works: Works) -> None:
    """Its numbers mean nothing any more."""
    works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works__changes', {works.snapshots(CHANGES)[1]})")
    with pytest.raises(SideTableForeign):
        works.project.changes("shop.works")
    works.sql(f"DROP TABLE {CHANGES}")
    with pytest.raises(SideTableForeign):
        works.project.changes("shop.works")


def restorable(folder: Path) -> Callable[[], None]:
    """Remember all tables of a catalog as they are; return what restores them, as a backup does."""
    database = folder / ".esker/catalog.db"
    with closing(sqlite3.connect(database)) as catalog:
        pointers = catalog.execute("SELECT metadata_location, table_name FROM iceberg_tables").fetchall()

    def restore() -> None:
        with closing(sqlite3.connect(database)) as catalog, catalog:
            catalog.executemany(
                "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", pointers
            )

    return restore


def test_a_table_that_was_restored(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has read more than is there is told so, and does not go on with other changes."""
    works = make(lane="small")
    for number in range(2):
        works.load([{"id": number, "title": "a"}])
    restore = restorable(works.folder.path)
    for number in range(2, 5):
        works.load([{"id": number, "title": "a"}])
    last = works.snapshots()[-1]
    restore()
    monkeypatch.setattr("esker.ledger.logged._reached", {})  # as in another process
    for since in (3, 5, "5"):
        with pytest.raises(UnknownPoint) as caught:
            works.project.changes("shop.works", since=since)
        assert "end with changeset 2" in caught.value.reason
        with pytest.raises(UnknownPoint):
            read_changes(works.project.engine, TABLE, since, None, 100)
    with pytest.raises(UnknownPoint):
        works.project.changes("shop.works", since=last)
    changes = works.project.changes("shop.works", since=2)
    assert (changes.since, changes.until, changes.count()) == (2, 2, 0)
    assert works.project.changes("shop.works", since=1, until=9).until == 2
    assert read_changes(works.project.engine, TABLE, 1, 9, 100).until == 2


def test_a_table_that_was_rolled_back(works: Works) -> None:
    """Its later snapshots are in the metadata still, and no part of its history."""
    snapshots = works.snapshots()
    works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works', {snapshots[1]})")
    for since in snapshots[2:]:
        with pytest.raises(UnknownPoint, match="no point"):
            works.project.changes("shop.works", since=since)
        with pytest.raises(UnknownPoint, match="no point"):
            read_changes(works.project.engine, TABLE, since, None, 100)
    assert works.project.changes("shop.works", since=snapshots[1]).since == 2


def test_tables_without_changes(make: Make) -> None:
    """A table that is not there, and one whose changes nobody wrote down."""
    works = make(lane="small", changes="off")
    with pytest.raises(NoChangeLog, match=r"shop\.nothing"):
        works.project.changes("shop.nothing")
    works.load([{"id": 1, "title": "a"}])
    with pytest.raises(NoChangeLog):
        works.project.changes("shop.works")


def test_many_rows_come_in_many_batches(make: Make) -> None:
    """Whoever reads batch by batch never holds all of them."""
    works = make(lane="large")
    works.load([{"id": number, "title": "x" * 50} for number in range(40_000)])
    batches = list(works.project.changes("shop.works").to_batches())
    assert sum(batch.num_rows for batch in batches) == 40_000
    assert max(batch.num_rows for batch in batches) <= 16_384


@pytest.fixture
def sales(folder: Folder) -> Folder:
    """An append table: two loads, and between them rows of another engine."""
    folder.write_csv("landing/1.csv", ["id", "name"], [(1, "a"), (2, "b")])
    folder.run()
    folder.open().engine.spark.sql(f"INSERT INTO {SALES} VALUES (7, 'foreign')").collect()
    folder.write_csv("landing/2.csv", ["id", "name"], [(3, "c")])
    folder.run()
    return folder


def test_appends_are_changes(sales: Folder) -> None:
    """An append table's own snapshots are its log; what others added has no number and no run."""
    project = sales.open()
    changes = project.changes("shop.sales")
    assert isinstance(changes, AppendedRows)
    assert (changes.since, changes.until, changes.count()) == (0, 2, 4)
    found = rows(changes)
    assert [(row[CHANGESET], row[OP], row["id"]) for row in found] == [
        (1, "insert", 1),
        (1, "insert", 2),
        (None, "insert", 7),
        (2, "insert", 3),
    ]
    assert [row[RUN] is None for row in found] == [False, False, True, False]
    frame = changes.to_spark()
    assert frame.columns == changes.schema.names
    by_id = {row["id"]: row for row in found}
    assert {row["id"]: row.asDict() for row in frame.collect()} == by_id
    with opened_files() as opened:
        assert [row["id"] for row in rows(project.changes("shop.sales", since=1))] == [7, 3]
    assert len(data_files(opened)) == 2
    assert project.changes("shop.sales", since=changes.snapshot_id).to_spark().count() == 0
    with pytest.raises(ChangesDiverged, match="continue changeset 2") as caught:
        project.changes("shop.sales", since={"table": changes.position["table"], "changeset": 2})
    assert "has none any more" in caught.value.reason


def test_appends_go_on_behind_a_snapshot(sales: Folder) -> None:
    """The snapshot that a range ends with is where the next one begins, whoever wrote in between."""
    project = sales.open()
    first = project.changes("shop.sales", until=1)
    assert [row["id"] for row in rows(first)] == [1, 2]
    rest = project.changes("shop.sales", since=first.snapshot_id)
    assert [row["id"] for row in rows(rest)] == [7, 3]
    assert (rest.since, rest.until) == (1, 2)
    assert project.changes("shop.sales", since=rest.snapshot_id).count() == 0
    project.engine.spark.sql(f"INSERT INTO {SALES} VALUES (8, 'late')").collect()
    assert [row["id"] for row in rows(project.changes("shop.sales", since=rest.snapshot_id))] == [8]


def test_appends_after_compaction_and_expiry(sales: Folder) -> None:
    """Compaction changes nothing; what expiry took is asked for in vain."""
    project = sales.open()
    spark = project.engine.spark
    options = "options => map('min-input-files', '2')"
    spark.sql(f"CALL lake.system.rewrite_data_files(table => 'shop.sales', {options})").collect()
    assert [row["id"] for row in rows(project.changes("shop.sales"))] == [1, 2, 7, 3]
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'shop.sales', retain_last => 1, "
        f"older_than => TIMESTAMP '{datetime.now() + timedelta(days=1)}')"
    ).collect()
    reached = project.changes("shop.sales").snapshot_id
    sales.write_csv("landing/3.csv", ["id", "name"], [(4, "d")])
    sales.run()
    # Behind changeset 2 another engine may have added rows, in a snapshot that is gone.
    for since in (0, 1, 2, "2020-01-01"):
        with pytest.raises(ChangesForgotten) as caught:
            project.changes("shop.sales", since=since)
        assert caught.value.first == 3
    assert [row["id"] for row in rows(project.changes("shop.sales", since=reached))] == [4]
    assert [row["id"] for row in rows(project.changes("shop.sales"))] == [4]


def test_appends_that_were_restored(sales: Folder) -> None:
    """Neither a changeset nor a snapshot that is no longer there leads to an empty range."""
    restore = restorable(sales.path)
    for number in (3, 4):
        sales.write_csv(f"landing/{number}.csv", ["id", "name"], [(number, "d")])
        sales.run()
    last = sales.open().changes("shop.sales")
    restore()
    project = sales.open()
    for since in (3, last.until, last.snapshot_id):
        with pytest.raises(UnknownPoint):
            project.changes("shop.sales", since=since)
    there = project.changes("shop.sales")
    assert (there.until, there.count()) == (2, 4)
    assert project.changes("shop.sales", since=2, until=9).until == 2
    first = project.changes("shop.sales", until=1).snapshot_id
    project.engine.spark.sql(f"CALL lake.system.rollback_to_snapshot('shop.sales', {first})").collect()
    for since in (2, there.snapshot_id):
        with pytest.raises(UnknownPoint):
            project.changes("shop.sales", since=since)


def test_appends_and_a_delete(sales: Folder) -> None:
    """Rows that went are told by no snapshot: that is said, and not passed over."""
    project = sales.open()
    project.engine.spark.sql(f"DELETE FROM {SALES} WHERE id = 1").collect()
    with pytest.raises(NoChangeLog) as caught:
        project.changes("shop.sales")
    assert "(overwrite) changed or deleted rows" in caught.value.reason
    assert project.changes("shop.sales", until=2).count() == 4


def test_the_log_is_registered_for(works: Works) -> None:
    """The table itself is opened for its properties only."""
    with opened_files() as opened:
        works.project.changes("shop.works")
    assert opened == []
    assert works.read(WORKS)
