"""Loading again what was there: what is stored wins, the position stays, and it may be done twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from esker.errors import BackfillUnsuitable, Held
from esker.pipeline.result import RunResult
from tests.folder import Folder

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]
COLUMNS = {"id": "bigint", "at": "bigint", "v": "string"}


def days(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A project that has loaded the files of two days, three rows each."""
    pipeline = Folder.files_pipeline(
        "landing/**/*.csv",
        mode="upsert",
        key=["id"],
        columns=COLUMNS,
        source={"on_changed": "ignore"},
        **keys,
    )
    folder = make_folder(pipelines={"sales": pipeline})
    write(folder, 1, [(1, 10, "a"), (2, 10, "a"), (3, 10, "a")])
    write(folder, 2, [(4, 20, "a"), (5, 20, "a"), (6, 20, "a")])
    folder.run()
    return folder


def write(folder: Folder, day: int, rows: list[tuple[int, int | str, str]]) -> None:
    folder.write_csv(f"landing/day=2026-11-{day:02}/a.csv", ["id", "at", "v"], rows)


def position(folder: Folder) -> Any:
    rows = folder.open().engine.spark.sql("SHOW TBLPROPERTIES lake.shop.sales").collect()
    ledger = next(row["value"] for row in rows if row["key"] == "esker.ledger.sales")
    return json.loads(ledger)["position"]


def sql(folder: Folder, statement: str) -> None:
    folder.open().engine.spark.sql(statement)


def done(result: RunResult) -> RunResult:
    if result.error is not None:
        raise result.error
    return result


@pytest.mark.parametrize("lane", ["small", "large"])
def test_a_range_is_loaded_again(make_folder: MakeFolder, lane: str) -> None:
    """Lost rows come back and newer versions count; a tie goes to what is stored."""
    folder = days(make_folder, order_by="at", lane=lane)
    before = position(folder)
    sql(folder, "DELETE FROM lake.shop.sales WHERE id IN (2, 5)")
    write(folder, 1, [(1, 10, "tie"), (2, 10, "a"), (3, 11, "newer"), (9, 10, "new")])
    project = folder.open()
    result = done(project.backfill("sales", since="2026-11-01", until="2026-11-02"))
    counts = result.rows
    assert (counts.read, counts.inserted, counts.updated, counts.stale) == (4, 2, 1, 1)
    assert "1 file again, from 2026-11-01 00:00 to 2026-11-02 00:00, by dates in paths" in result.notes
    rows = folder.rows("shop.sales", "id", "at", "v")
    assert rows == [(1, 10, "a"), (2, 10, "a"), (3, 11, "newer"), (4, 20, "a"), (6, 20, "a"), (9, 10, "new")]
    assert position(folder) == before
    again = done(project.backfill("sales", since="2026-11-01", until="2026-11-02"))
    assert (again.batches, again.rows.stale) == (0, 4)
    # The next normal run goes on where it was.
    write(folder, 3, [(7, 30, "a")])
    assert folder.run().rows.read == 1


@pytest.mark.parametrize("lane", ["small", "large"])
def test_deletes_of_which_nobody_knows_when(make_folder: MakeFolder, lane: str) -> None:
    """In files that are read again they are older than all: no row of the same files, and none to come."""
    folder = days(make_folder, order_by="at", lane=lane, delete_when="v = 'gone'")
    # Key 1 has a newer row, key 2 no other; 8 was never there, and 3 makes the batch new.
    write(folder, 1, [(1, 11, "newer"), (1, "", "gone"), (2, "", "gone"), (3, 99, "newest"), (8, "", "gone")])
    counts = done(folder.open().backfill("sales", since="2026-11-01", until="2026-11-02")).rows
    assert (counts.updated, counts.stale, counts.ignored, counts.duplicates) == (2, 1, 1, 1)
    write(folder, 3, [(2, 50, "later"), (8, 50, "later")])
    counts = folder.run().rows
    assert (counts.updated, counts.inserted) == (1, 1)
    rows = [row[:3] for row in folder.rows("shop.sales", "id", "at", "v") if row[0] in (1, 2, 3, 8)]
    assert rows == [(1, 11, "newer"), (2, 50, "later"), (3, 99, "newest"), (8, 50, "later")]


def test_without_order_only_missing_keys_are_inserted(make_folder: MakeFolder) -> None:
    """Nothing tells which version is newer, so what is there stays; files without a date go by their time."""
    folder = days(make_folder, lane="small")
    sql(folder, "DELETE FROM lake.shop.sales WHERE id = 2")
    write(folder, 1, [(1, 10, "other"), (2, 10, "a"), (3, 10, "a")])
    folder.write_csv("landing/undated.csv", ["id", "at", "v"], [(8, 1, "a")])
    for path, day in (("day=2026-11-01/a.csv", 1), ("day=2026-11-02/a.csv", 2), ("undated.csv", 3)):
        moment = datetime(2026, 10, day, tzinfo=UTC).timestamp()
        os.utime(folder.path / "landing" / path, (moment, moment))
    result = done(folder.open().backfill("sales", until="2026-10-02"))
    assert (result.rows.inserted, result.rows.ignored) == (1, 2)
    assert result.notes[-1].endswith("by times of modification")
    assert folder.rows("shop.sales", "id", "v")[:3] == [(1, "a"), (2, "a"), (3, "a")]
    nothing = done(folder.open().backfill("sales", since="2030-01-01"))
    assert nothing.notes == ("no file to load again: from 2030-01-01 00:00",)


@pytest.mark.parametrize("lane", ["small", "large"])
def test_all_of_a_source_is_compared(make_folder: MakeFolder, lane: str) -> None:
    """The difference is one changeset with real deletes, held when there are too many of them."""
    folder = days(make_folder, lane=lane, deletes="hard")
    sql(folder, "UPDATE lake.shop.sales SET v = 'damaged', _esker_hash = 0 WHERE id = 4")
    sql(folder, "INSERT INTO lake.shop.sales SELECT 50, 1, 'never sent', 1L")
    sql(folder, "DELETE FROM lake.shop.sales WHERE id = 6")
    project = folder.open()
    result = project.backfill("sales", full=True)
    assert isinstance(result.error, Held)
    assert result.status == "held"
    assert "1 of 6 rows" in result.error.message
    write(folder, 3, [(7, 30, "a")])
    folder.run()  # a normal run is not kept from its work, and does not forget the question
    before = position(folder)
    result = done(project.approve("sales"))
    counts = result.rows
    assert (counts.unchanged, counts.updated, counts.inserted, counts.missing) == (5, 1, 1, 1)
    assert (result.changeset, result.batches) == (3, 1)
    assert folder.rows("shop.sales", "id", "v") == [(i, "a") for i in range(1, 8)]
    log = folder.rows("shop.sales__changes", "_esker_changeset", "_esker_op", "id")
    assert [row for row in log if row[0] == 3] == [(3, "delete", 50), (3, "insert", 6), (3, "update", 4)]
    assert position(folder) == before
    assert done(project.backfill("sales", full=True)).batches == 0


def test_what_cannot_be_loaded_again(make_folder: MakeFolder) -> None:
    """The error says why, before anything is started."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline()})
    project = folder.open()
    for wrong in ({}, {"full": True, "since": "2026-11-01"}, {"since": "soon"}, {"since": "2026-11-01"}):
        with pytest.raises(BackfillUnsuitable):
            project.backfill("sales", **wrong)
    folder.change(mode="replace")
    with pytest.raises(BackfillUnsuitable, match="cannot be backfilled") as caught:
        folder.open().backfill("sales", since="2026-11-01")
    assert "--full" in caught.value.remedy
