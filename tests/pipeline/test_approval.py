"""Batches that delete too much wait for a person: nothing changes until one decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from esker.errors import Held, NoHold
from esker.ledger.state import State
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


def test_a_source_that_recovers_needs_nobody(make_folder: MakeFolder) -> None:
    """The next complete snapshot takes the place of the one that was held."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    deliver(folder, range(10), "b")
    assert folder.run().rows.updated == 10
    assert held(folder) is None


def test_a_hold_that_was_overtaken_counts_no_longer(make_folder: MakeFolder) -> None:
    """Rejecting it must not move the position back to where it was."""
    folder = snapshots(make_folder)
    deliver(folder, [3])
    with pytest.raises(Held):
        folder.run()
    folder.open().load("sales", [{"id": i, "v": "c"} for i in range(10)])
    with pytest.raises(NoHold):
        folder.open().reject("sales")
    assert ids(folder) == list(range(10))


def test_replacing_everything_by_nothing_is_held(make_folder: MakeFolder) -> None:
    """Mode `replace` asks as well before it empties a table."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(mode="replace")})
    deliver(folder, range(3))
    folder.run()
    deliver(folder, [])
    with pytest.raises(Held, match="3 of 3"):
        folder.run()
    assert ids(folder) == [0, 1, 2]
    assert folder.open().approve("sales").status == "succeeded"
    assert ids(folder) == []
