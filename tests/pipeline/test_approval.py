"""Batches that trip a guard wait for a person: nothing changes until one decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from esker.errors import Held, NoHold
from esker.ledger.change_log import CHANGESET, OP
from esker.ledger.state import State
from esker.pipeline.api import OpenProject
from esker.pipeline.status import project_status
from tests.folder import Folder

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def snapshots(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A project whose table follows complete snapshots of the source, ten rows at first."""
    folder = make_folder(
        pipelines={"sales": Folder.files_pipeline(mode="sync", key=["id"], deletes="hard", **keys)}
    )
    deliver(folder, range(10))
    folder.run()
    return folder


def deliver(folder: Folder, ids: Any, value: str = "a") -> None:
    """Put one file into the place of what was delivered before."""
    for old in (folder.path / "landing").iterdir():
        old.unlink()
    deliver.number += 1  # type: ignore[attr-defined]
    name = f"landing/{deliver.number}.csv"  # type: ignore[attr-defined]
    folder.write_csv(name, ["id", "v"], [(i, value) for i in ids])


deliver.number = 0  # type: ignore[attr-defined]


def ids(folder: Folder) -> list[int]:
    return sorted(row[0] for row in folder.rows("shop.sales", "id"))


def held(folder: Folder) -> str | None:
    project = folder.open().project
    with closing(State.open(project)) as state:
        hold = project_status(project, state, state.now())[0].hold
    return hold.message if hold else None


def test_one_percent_of_the_rows_as_a_snapshot_is_held(make_folder: MakeFolder) -> None:
    """A cut-off export deletes nothing; the run says so, and so does the status."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    for _ in range(2):  # a second run asks the same question
        with pytest.raises(Held, match="9 of 10") as caught:
            folder.run()
        assert caught.value.exit_status == 6
    assert ids(folder) == list(range(10))
    assert "9 of 10" in str(held(folder))


def test_an_empty_snapshot_is_held(make_folder: MakeFolder) -> None:
    """A source without any row would delete everything."""
    folder = snapshots(make_folder)
    deliver(folder, [])
    with pytest.raises(Held, match="10 of 10"):
        folder.run()
    assert ids(folder) == list(range(10))


@pytest.mark.parametrize("lane", ["small", "large"])
def test_an_approved_batch_happens_once(make_folder: MakeFolder, lane: str) -> None:
    """Afterwards nothing is held, and the guard is as strict as before."""
    folder = snapshots(make_folder, lane=lane)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    result = folder.open().approve("sales")
    assert (result.status, result.rows.missing) == ("succeeded", 9)
    assert ids(folder) == [3]
    assert held(folder) is None
    with pytest.raises(NoHold):
        folder.open().approve("sales")
    deliver(folder, [4])
    with pytest.raises(Held):
        folder.run()


def test_more_than_was_approved_is_held_again(make_folder: MakeFolder) -> None:
    """A person approves numbers that were shown, not whatever comes."""
    folder = snapshots(make_folder)
    deliver(folder, range(5))
    with pytest.raises(Held):
        folder.run()
    deliver(folder, range(2))
    result = folder.open().approve("sales")
    assert (result.status, result.rows.missing) == ("held", 0)
    assert ids(folder) == list(range(10))
    assert "8 of 10" in str(held(folder))


def test_approving_counts_against_the_table_of_today(make_folder: MakeFolder) -> None:
    """Rows that went meanwhile are not deleted twice; the batch is compared anew."""
    folder = snapshots(make_folder)
    deliver(folder, range(5))
    with pytest.raises(Held):
        folder.run()
    folder.open().engine.spark.sql("DELETE FROM lake.shop.sales WHERE id = 9")
    result = folder.open().approve("sales")
    assert (result.status, result.rows.missing) == ("succeeded", 4)
    assert ids(folder) == list(range(5))


def test_a_hold_approved_after_many_commits_and_a_compaction(make_folder: MakeFolder) -> None:
    """What is deleted are the rows of today: twenty changesets later, in files that did not exist."""
    folder = snapshots(make_folder)
    edits = Folder.files_pipeline("nothing/*.csv", mode="upsert", key=["id"])
    folder.document["pipelines"]["edits"] = edits
    folder.save()
    deliver(folder, range(5))
    with pytest.raises(Held):
        folder.run()
    project = folder.open()
    for number in range(20):
        project.load("edits", pa.table({"id": [3, 9], "v": [f"edit {number}"] * 2}))
    project.engine.spark.sql("CALL lake.system.rewrite_data_files('shop.sales')")
    result = project.approve("sales")
    assert (result.status, result.rows.missing, result.rows.updated) == ("succeeded", 5, 1)
    assert dict(folder.rows("shop.sales", "id", "v")) == dict.fromkeys(range(5), "a")
    log = folder.rows("shop.sales__changes", CHANGESET, OP, "id", "v")
    assert [row for row in log if row[0] == 22 and row[2] in (3, 9)] == [
        (22, "delete", 9, "edit 19"),
        (22, "update", 3, "a"),
    ]


def test_a_rejected_batch_is_left_behind(make_folder: MakeFolder) -> None:
    """The next run has nothing to do until the source changes again, and then goes on."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    folder.open().reject("sales")
    assert held(folder) is None
    assert folder.open().plan(["sales"])[0].is_empty
    assert folder.run().rows.read == 0
    assert ids(folder) == list(range(10))
    deliver(folder, range(11))
    assert folder.run().rows.inserted == 1
    assert ids(folder) == list(range(11))


@pytest.mark.parametrize("value", ["a", "b"])
def test_a_source_that_recovers_needs_nobody(make_folder: MakeFolder, value: str) -> None:
    """The next complete snapshot takes the place of the one that was held."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    deliver(folder, range(10), value)
    counts = folder.run().rows
    assert (counts.updated, counts.unchanged) == ((10, 0) if value == "b" else (0, 10))
    assert held(folder) is None


def test_a_hold_that_was_overtaken_counts_no_longer(make_folder: MakeFolder) -> None:
    """Rejecting it must not move the position back to where it was, approving it not load what nobody saw."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    state = {path: path.read_bytes() for path in folder.path.glob(".esker/state.db*")}
    deliver(folder, range(10), "b")
    folder.run()
    deliver(folder, [4])
    for decide in (OpenProject.reject, OpenProject.approve):
        folder.lose_state()
        for path, content in state.items():  # as it was before that run: the hold is still in it
            path.write_bytes(content)
        with pytest.raises(NoHold):
            decide(folder.open(), "sales")
    assert ids(folder) == list(range(10))


def test_a_hold_outlives_rows_that_are_handed_over(make_folder: MakeFolder) -> None:
    """They do not move the position: what is held is still what comes next."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    folder.open().load("sales", [{"id": i, "v": "c"} for i in range(10)])
    folder.open().reject("sales")
    assert ids(folder) == list(range(10))
    assert folder.run().rows.read == 0


def test_replacing_everything_by_nothing_is_held(make_folder: MakeFolder) -> None:
    """Mode `replace` asks as well before it empties a table."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="replace")})
    deliver(folder, range(3))
    folder.run()
    deliver(folder, [])
    with pytest.raises(Held, match="no row at all, and the table has 3"):
        folder.run()
    assert ids(folder) == [0, 1, 2]
    assert folder.open().approve("sales").status == "succeeded"
    assert ids(folder) == []


def add(folder: Folder, name: str, count: int, first: int = 0) -> None:
    """Deliver one more file."""
    folder.write_csv(f"landing/{name}.csv", ["id", "v"], [(first + i, "a") for i in range(count)])


@pytest.mark.parametrize("keys", [{"mode": "append"}, {"mode": "upsert", "key": ["id"]}])
def test_too_many_and_too_few_rows_are_held(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    """Only the batch that was shown is approved: the next one is looked at as strictly as ever."""
    pipeline = Folder.files_pipeline(guard={"min_rows": 2, "max_rows": 4}, source={"max_files": 1}, **keys)
    folder = make_folder(pipelines={"sales": pipeline})
    for name, count, first in (("a", 3, 0), ("b", 6, 10), ("c", 5, 20), ("d", 1, 30)):
        add(folder, name, count, first)
    with pytest.raises(Held, match="it has 6 rows, and at most 4 are allowed"):
        folder.run()
    assert ids(folder) == [0, 1, 2]
    staged = list((folder.path / ".esker/warehouse/shop/sales/data").rglob("*.parquet"))
    assert len(staged) == 1  # a batch that waits for weeks leaves no files behind, run by run
    result = folder.open().approve("sales")
    assert (result.status, result.rows.inserted) == ("held", 6)
    assert "it has 5 rows" in str(held(folder))
    assert folder.open().approve("sales").rows.inserted == 5
    assert "it has 1 rows, and at least 2 are expected" in str(held(folder))
    folder.open().reject("sales")
    assert ids(folder) == [0, 1, 2, *range(10, 16), *range(20, 25)]
    assert folder.run().rows.read == 0


@pytest.mark.parametrize("lane", ["small", "large"])
def test_deletes_of_an_upsert_can_be_guarded(make_folder: MakeFolder, lane: str) -> None:
    """Without `max_delete` an upsert deletes as much as the source says."""
    pipeline = Folder.files_pipeline(
        mode="upsert", key=["id"], deletes="hard", delete_when="v = 'gone'", lane=lane
    )
    folder = make_folder(pipelines={"sales": pipeline})
    add(folder, "a", 10)
    folder.run()
    folder.write_csv("landing/b.csv", ["id", "v"], [(i, "gone") for i in range(6)])
    folder.change(guard={"max_delete": "50%"})
    with pytest.raises(Held, match="6 of 10"):
        folder.run()
    assert ids(folder) == list(range(10))
    assert folder.open().approve("sales").rows.deleted == 6
    assert ids(folder) == list(range(6, 10))


def test_an_unusually_large_batch_is_held(make_folder: MakeFolder) -> None:
    """Many files of the usual size are a backlog, one that is far larger is a question."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline()})
    project = folder.open()
    for number in range(9):
        add(folder, f"usual {number}", 2)
        project.run("sales")
    add(folder, "early", 10_002)
    project.run("sales")  # too early to know what is usual
    for number in range(10, 70):
        add(folder, f"usual {number}", 200)  # a backlog: as many rows, no file unusual
    project.run("sales")
    add(folder, "large", 10_003)
    with pytest.raises(Held, match="10,003 rows a file, more than 100 times the usual 2"):
        project.run("sales")
    project.load("sales", [{"id": i, "v": "x"} for i in range(12_000)])  # a program knows what it means
    assert project.approve("sales").rows.read == 10_003
    add(folder, "large again", 10_003)
    assert project.run("sales").rows.read == 10_003  # what was approved once is known by now


def test_an_unusually_small_snapshot_is_held(make_folder: MakeFolder) -> None:
    """Mode `replace` compares nothing, but the number of rows tells that something is missing."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="replace")})
    project = folder.open()
    for _ in range(10):
        deliver(folder, range(2_000))
        project.run("sales")
    deliver(folder, range(150))
    with pytest.raises(Held, match="150 rows, and 10 times as many are less than the usual 2,000"):
        project.run("sales")
    assert len(ids(folder)) == 2_000
    folder.change(guard={"times_usual": "off", "max_delete": "90%"})
    with pytest.raises(Held, match="it would delete 1,850 of 2,000 rows"):
        folder.run()
    folder.change(guard={"times_usual": "off"})
    assert folder.run().rows.inserted == 150


def test_an_empty_snapshot_is_held_whatever_may_be_deleted(make_folder: MakeFolder) -> None:
    """`max_delete: 100%` is no word about a source that is empty; `min_rows: 0` is."""
    folder = snapshots(make_folder, guard={"max_delete": "100%"})
    deliver(folder, [])
    with pytest.raises(Held, match="no row at all, and the table has 10"):
        folder.run()
    folder.change(guard={"max_delete": "100%", "min_rows": 0})
    assert folder.run().rows.missing == 10
    assert held(folder) is None


def test_rows_that_were_handed_over_are_held_by_whoever_has_them(make_folder: MakeFolder) -> None:
    """`esker approve` could not load them; the program hands them over again."""
    folder = snapshots(make_folder)
    project = folder.open()
    with pytest.raises(Held, match="9 of 10") as caught:
        project.load("sales", [{"id": 3, "v": "a"}])
    assert "approved=error" in caught.value.remedy
    assert held(folder) is None
    with pytest.raises(Held, match="10 of 10"):
        project.load("sales", [{"id": 77, "v": "a"}], approved=caught.value)
    assert project.load("sales", [{"id": 3, "v": "a"}], approved=caught.value).rows.missing == 9
    assert ids(folder) == [3]
