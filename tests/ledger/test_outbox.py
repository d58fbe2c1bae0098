"""What a publish owes to the change log is paid by whoever comes next: once, in order, or not silently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.table import TableId
from esker.errors import LogAhead, LogGap, OutboxFull, SideTableForeign, SideTableLost
from esker.events import Event, Reached, Step
from esker.ledger.change_log import BATCH, CHANGESET, COMMITTED_AT, ROW, RUN
from esker.ledger.consumer_tags import move_tag
from tests.load.works import CHANGES, LANES, WORKS, Make, Row, Works, at

pytestmark = pytest.mark.spark


class Stopped(BaseException):
    """The process stops in the middle: nobody catches this."""


def stop() -> None:
    raise Stopped("here")


@pytest.fixture
def works(make: Make) -> Works:
    """A table with one changeset, all of it in the log."""
    works = make(lane="small", order_by="at")
    works.load([{"id": 1, "at": 1, "title": "a"}])
    return works


@pytest.fixture
def pair(works: Works) -> Works:
    """The same with a second pipeline, `more`, into the same table."""
    works.folder.document["pipelines"]["more"] = dict(works.folder.document["pipelines"]["works"])
    works.folder.save()
    works.project = works.folder.open()
    return works


def titles(works: Works) -> dict[Any, str]:
    return {number: row["title"] for number, row in works.rows().items()}


def check_log(works: Works, changesets: int) -> None:
    """The log holds changesets 1 to n, each in one snapshot, and makes the table."""
    log = works.log()
    assert [row[CHANGESET] for row in log] == sorted(row[CHANGESET] for row in log)
    assert {row[CHANGESET] for row in log} == set(range(1, changesets + 1))
    assert len(works.snapshots(CHANGES)) == changesets
    assert works.properties(CHANGES)["esker.logged"] == str(changesets)
    # A touch moves an order value without a change: the log does not tell it.
    assert _untimed(works.replayed()) == _untimed(works.rows())


def _untimed(rows: dict[Any, Row]) -> dict[Any, Row]:
    return {key: {name: row[name] for name in row if name != "at"} for key, row in rows.items()}


@contextmanager
def log_is_down(monkeypatch: pytest.MonkeyPatch, *, landing: bool = False) -> Iterator[None]:
    """Refuse every commit to the change log, or let it land and lose the answer."""
    swap = Attempt.swap

    def refuse(self: Attempt) -> None:
        if "works__changes" not in self.location:
            return swap(self)
        if landing:
            swap(self)
        raise SwapFailed("ServiceFailureException", "the catalog is down")

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "swap", refuse)
        yield


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("step", [Step.AFTER_COMMIT, Step.BEFORE_LOG])
def test_stop_between_table_and_log(make: Make, lane: str, step: Step) -> None:
    """The next run appends what is owed before its own work, also when it has nothing else to do."""
    works = make(lane=lane)
    works.load([{"id": 1, "title": "a"}])
    with pytest.raises(Stopped):
        works.load([{"id": 1, "title": "b"}, {"id": 2, "title": "b"}], at(step, stop))
    assert titles(works) == {1: "b", 2: "b"}
    assert {row[CHANGESET] for row in works.log()} == {1}
    assert works.load([{"id": 1, "title": "b"}]).rows.unchanged == 1
    check_log(works, 2)
    assert works.load([{"id": 2, "title": "c"}]).changeset == 3
    check_log(works, 3)


def test_another_pipeline_comes_first(pair: Works) -> None:
    """Scenario 54: a stop before the log, then another pipeline publishes: the log is dense, in order."""
    with pytest.raises(Stopped):
        pair.load([{"id": 1, "at": 2, "title": "b"}], at(Step.AFTER_COMMIT, stop))
    assert pair.project.load("more", [{"id": 1, "at": 3, "title": "c"}]).changeset == 3
    check_log(pair, 3)
    assert [row["title"] for row in pair.log()] == ["a", "b", "c"]
    assert pair.load([{"id": 1, "at": 4, "title": "d"}]).changeset == 4
    check_log(pair, 4)


@pytest.mark.parametrize("step", [Step.STAGED, Step.WRITTEN, Step.BEFORE_COMMIT, Step.BEFORE_LOG])
def test_another_pipeline_comes_in_between(pair: Works, step: Step) -> None:
    """Changes and mere touches of another pipeline, in the middle of a run, leave no gap in the log."""

    def others() -> None:
        pair.folder.open().load("more", [{"id": 2, "at": 1, "title": "x"}])
        pair.folder.open().load("more", [{"id": 2, "at": 2, "title": "y"}])
        assert pair.folder.open().load("more", [{"id": 2, "at": 3, "title": "y"}]).rows.unchanged == 1

    pair.load([{"id": 1, "at": 2, "title": "b"}], at(step, others))
    check_log(pair, 4)
    pair.load([{"id": 1, "at": 3, "title": "c"}])
    check_log(pair, 5)
    assert titles(pair) == {1: "c", 2: "y"}


@pytest.mark.parametrize("lane", LANES)
def test_log_that_cannot_be_written(make: Make, lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs succeed and say how far the log lags; the first run after the outage appends everything."""
    works = make(lane=lane, order_by="at")
    works.load([{"id": 1, "at": 1, "title": "a"}])
    with log_is_down(monkeypatch):
        first = works.load([{"id": 1, "at": 2, "title": "b"}])
        second = works.load([{"id": 1, "at": 3, "title": "c"}])
    assert (first.status, first.log_lag, second.status, second.log_lag) == ("succeeded", 1, "succeeded", 2)
    assert "works__changes" in second.notes[-1]
    assert "the catalog is down" in second.notes[-1]
    assert titles(works) == {1: "c"}
    assert [entry["n"] for entry in works.outbox()] == [2, 3]
    healed = works.load([{"id": 1, "at": 4, "title": "d"}])
    assert (healed.log_lag, healed.notes) == (0, ())
    check_log(works, 4)


def test_log_that_fails_after_a_touch(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit without a change does not make the outbox forget where the log ends."""
    works.load([{"id": 1, "at": 2, "title": "a"}])
    with log_is_down(monkeypatch):
        works.load([{"id": 1, "at": 3, "title": "b"}])
        works.load([{"id": 1, "at": 4, "title": "b"}])
        works.load([{"id": 1, "at": 5, "title": "c"}])
    works.load([{"id": 1, "at": 6, "title": "c"}])
    check_log(works, 3)
    assert "esker.gaps" not in works.properties(CHANGES)


def test_answer_of_the_log_that_is_lost(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that landed without an answer is not repeated."""
    with log_is_down(monkeypatch, landing=True):
        result = works.load([{"id": 1, "at": 2, "title": "b"}])
    assert result.status == "succeeded"
    works.load([{"id": 1, "at": 3, "title": "c"}])
    check_log(works, 3)


def lose(works: Works) -> None:
    """Remove the staged change files of the newest changeset, as an orphan removal would."""
    files = works.outbox()[-1]["f"]
    for name in [files] if isinstance(files, str) else [name for name, _ in files]:
        [path] = works.folder.path.rglob(name)
        path.unlink()


@pytest.mark.parametrize(
    ("lane", "deletes"),
    [
        ("small", "soft"),
        ("small", "hard"),
        pytest.param("large", "soft", marks=pytest.mark.soak),
        pytest.param("large", "hard", marks=pytest.mark.soak),
    ],
)
def test_staged_changes_that_are_gone(make: Make, lane: str, deletes: str) -> None:
    """A lost file of changes is made anew from the table: the log is what it would have been."""
    first = [{"id": i, "at": 1, "title": "a", "deleted": False} for i in range(6)]
    second = [
        {"id": 0, "at": 2, "title": "b", "deleted": False},
        {"id": 1, "at": 1, "title": "a", "deleted": True},
        {"id": 2, "at": 0, "title": "stale", "deleted": False},
        {"id": 3, "at": 1, "title": "a", "deleted": False},
        {"id": 4, "at": 2, "title": "a", "deleted": False},
        {"id": 7, "at": 2, "title": "new", "deleted": False},
    ]
    third = [{"id": 1, "at": 3, "title": "a", "deleted": False}]
    check_rebuilt(make, [first, second, third], lane=lane, order_by="at", deletes=deletes)


def check_rebuilt(make: Make, batches: list[list[dict[str, Any]]], **keys: Any) -> None:
    """Load batches with and without losing their change files, and compare the logs."""
    logs = []
    for is_lost in (False, True):
        works = make(**keys)
        for batch in batches:
            if is_lost:
                with pytest.raises(Stopped):
                    works.load(batch, at(Step.AFTER_COMMIT, stop))
                lose(works)
            else:
                works.load(batch)
        works.load([{"id": 99, "at": 1, "title": "last", "deleted": False}])
        assert len(works.snapshots(CHANGES)) == len(batches) + 1
        logs.append(works.log())
    assert {row[CHANGESET] for row in logs[1]} == set(range(1, len(batches) + 2))
    own = {ROW, RUN, BATCH, COMMITTED_AT}
    plain, rebuilt = (
        sorted(({n: v for n, v in row.items() if n not in own} for row in log), key=repr) for log in logs
    )
    assert rebuilt == plain
    assert all(row[RUN] and row[BATCH] for row in logs[1])
    moments = {row[CHANGESET]: row[COMMITTED_AT] for row in logs[1]}
    assert sorted(moments.values()) == [moments[number] for number in sorted(moments)]


def version(number: int, at: int, title: str | None) -> dict[str, Any]:
    """A row; without a title a delete."""
    return {"id": number, "at": at, "title": title or "gone", "deleted": title is None}


def test_staged_versions_that_are_gone(make: Make) -> None:
    """Versions: new, replaced, late, ended, brought back, ended by a delete that came before them."""
    batches = [
        [*(version(number, 10, "a") for number in range(9)), version(9, 50, None)],
        [
            version(0, 20, "b"),
            version(1, 10, "A"),  # in the place of a stored one
            version(2, 5, "late"),
            version(3, 20, None),
            version(4, 20, None),
            version(4, 30, "back"),
            version(5, 10, "a"),
            version(6, 20, "b"),
            version(6, 25, None),
            version(9, 40, "ends at 50"),
        ],
        [
            version(3, 30, "back"),
            version(3, 15, "late"),  # ends where the delete is
            version(4, 15, None),  # a version follows
            version(6, 22, None),  # before the delete that was known
            version(7, 20, None),
            version(9, 60, "after the delete"),
            version(0, 20, None),  # in the moment in which the version began
            version(10, 1, "new"),
            version(10, 2, "newer"),
        ],
    ]
    check_rebuilt(make, batches, mode="scd2", order_by="at", lane="small")


def test_staged_rows_of_keys_that_are_gone(make: Make) -> None:
    """Keys with several rows, of which some stay."""
    batches = [
        [version(1, 1, "a"), version(1, 1, "a"), version(1, 1, "b"), version(2, 1, "c"), version(3, 1, "d")],
        [version(1, 1, "a"), version(1, 1, "z"), version(2, 1, None)],
    ]
    check_rebuilt(make, batches, mode="delete_insert", lane="small")


def test_staged_changes_that_nothing_tells_any_more(works: Works) -> None:
    """When the table's snapshot is gone too, the run says so; it is published all the same."""
    with pytest.raises(Stopped):
        works.load([{"id": 1, "at": 2, "title": "b"}], at(Step.AFTER_COMMIT, stop))
    lose(works)
    works.sql(f"INSERT INTO {WORKS} SELECT 50, 1, 'c', false, null")
    kept = "retain_last => 1, older_than => timestamp '2100-01-01'"
    works.sql(f"CALL lake.system.expire_snapshots(table => 'shop.works', {kept})")
    result = works.load([{"id": 2, "at": 1, "title": "a"}])
    assert result.log_lag == 2
    assert "changeset 2 is gone" in result.notes[-1]
    assert {row[CHANGESET] for row in works.log()} == {1}
    assert titles(works) == {1: "b", 2: "a", 50: "c"}


def test_outbox_that_does_not_follow_the_log(works: Works) -> None:
    """A changeset between the log and the outbox is lost: changes are not read past it."""
    with pytest.raises(Stopped):
        works.load([{"id": 1, "at": 2, "title": "b"}], at(Step.AFTER_COMMIT, stop))
    owed = json.dumps([entry | {"n": 3} for entry in works.outbox()])
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('esker.outbox' = '{owed}')")
    with pytest.raises(LogGap):
        works.project.changes("shop.works")
    assert works.log()[-1][CHANGESET] == 1


def test_tag_on_a_log_that_is_down(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer's tag that cannot be set is an error: without it, changes would be taken out of the log."""
    log = TableId("lake", "shop.works__changes")
    with log_is_down(monkeypatch), pytest.raises(SideTableLost, match="could not be written"):
        move_tag(works.project.engine, log, "esker-trial", works.snapshots(CHANGES)[0])


def drop(works: Works) -> None:
    works.sql(f"DROP TABLE {CHANGES}")


def make_anew(works: Works) -> None:
    works.sql(f"CREATE TABLE lake.shop.kept USING iceberg AS SELECT * FROM {CHANGES}")
    works.sql(f"DROP TABLE {CHANGES}")
    works.sql(f"CREATE TABLE {CHANGES} USING iceberg AS SELECT * FROM lake.shop.kept")


def roll_back(works: Works) -> None:
    first = works.snapshots(CHANGES)[0]
    works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works__changes', {first})")


@pytest.mark.parametrize("act", [drop, make_anew, roll_back])
@pytest.mark.parametrize("seen", [True, False], ids=["same process", "new process"])
def test_log_that_is_another_one(
    works: Works, act: Callable[[Works], None], seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that was dropped, made anew or rolled back stops the run before anything is published."""
    works.load([{"id": 1, "at": 2, "title": "b"}])
    act(works)
    if not seen:
        monkeypatch.setattr("esker.ledger.logged._reached", {})
    before = works.snapshots()
    for _ in range(2):
        with pytest.raises(SideTableForeign, match="works__changes"):
            works.load([{"id": 1, "at": 3, "title": "c"}])
    assert works.snapshots() == before
    assert titles(works) == {1: "b"}


def test_log_ahead_of_its_table(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table restored from an older copy would number its changes anew: the run stops."""
    works.load([{"id": 1, "at": 2, "title": "b"}])
    head = json.loads(works.properties()["esker.head"])
    text = json.dumps(head | {"changeset": 1})
    works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('esker.head' = '{text}', 'esker.outbox' = '[]')")
    monkeypatch.setattr("esker.ledger.logged._reached", {})
    with pytest.raises(LogAhead):
        works.load([{"id": 1, "at": 3, "title": "c"}])
    assert titles(works) == {1: "b"}


def test_full_outbox(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too much waits for the log, the next run fails before it reads; later all goes on."""
    monkeypatch.setattr("esker.ledger.outbox._LIMIT", 700)
    reached: list[Step] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reached):
            reached.append(event.step)

    number = 1

    def load_until_full() -> None:
        nonlocal number
        while number < 20:
            number += 1
            reached.clear()
            works.load([{"id": 1, "at": number, "title": f"{number}"}], listen)

    with log_is_down(monkeypatch):
        with pytest.raises(OutboxFull) as caught:
            load_until_full()
        assert caught.value.exit_status == 5
        assert number > 4
        assert Step.READ not in reached
        assert titles(works) == {1: f"{number - 1}"}
        assert len(works.properties()["esker.outbox"]) <= 700
    works.load([{"id": 1, "at": 50, "title": "last"}])
    check_log(works, number)
    assert titles(works) == {1: "last"}


@pytest.mark.parametrize("lane", LANES)
def test_changes_off_and_on_again(make: Make, lane: str) -> None:
    """What was not logged is a gap that the log itself names; afterwards the log goes on."""
    works = make(lane=lane)
    works.load([{"id": 1, "title": "a"}])
    works.change(changes="off")
    works.load([{"id": 1, "title": "b"}])
    works.load([{"id": 1, "title": "c"}])
    assert works.log()[-1]["title"] == "a"
    works.change(changes="on")
    assert works.load([{"id": 1, "title": "d"}]).changeset == 4
    assert works.load([{"id": 1, "title": "e"}]).changeset == 5
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[2, 3]]
    assert [(row[CHANGESET], row["title"]) for row in works.log()] == [(1, "a"), (4, "d"), (5, "e")]
    assert len(works.snapshots(CHANGES)) == 3


def test_stop_before_the_log_then_changes_off(works: Works) -> None:
    """What was promised to the log is appended also by a run that logs nothing itself."""
    with pytest.raises(Stopped):
        works.load([{"id": 1, "at": 2, "title": "b"}], at(Step.AFTER_COMMIT, stop))
    works.change(changes="off")
    works.load([{"id": 1, "at": 3, "title": "c"}])
    assert [row["title"] for row in works.log()] == ["a", "b"]
    works.change(changes="on")
    works.load([{"id": 1, "at": 4, "title": "d"}])
    assert [(row[CHANGESET], row["title"]) for row in works.log()] == [(1, "a"), (2, "b"), (4, "d")]
    assert json.loads(works.properties(CHANGES)["esker.gaps"]) == [[3, 3]]


def test_stop_before_a_delete_is_remembered(make: Make) -> None:
    """A hard delete whose run stopped right after the commit still keeps late rows out."""
    works = make(lane="small", order_by="at", deletes="hard")
    works.load([{"id": 1, "at": 1, "title": "a", "deleted": False}])
    with pytest.raises(Stopped):
        works.load([{"id": 1, "at": 5, "title": "a", "deleted": True}], at(Step.AFTER_COMMIT, stop))
    assert works.rows() == {}
    assert works.load([{"id": 1, "at": 4, "title": "late", "deleted": False}]).rows.stale == 1
    assert works.rows() == {}
    check_log(works, 2)


def test_many_files_of_one_changeset(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """More files than the outbox names are listed in a file beside them; none is lost."""
    monkeypatch.setattr("esker.ledger.side_table._NAMED", 0)
    with pytest.raises(Stopped):
        works.load([{"id": 2, "at": 1, "title": "b"}], at(Step.AFTER_COMMIT, stop))
    [entry] = works.outbox()
    assert entry["f"].endswith("-list.parquet")
    works.load([{"id": 3, "at": 1, "title": "c"}])
    check_log(works, 3)
