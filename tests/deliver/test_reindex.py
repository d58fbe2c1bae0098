"""A reindex fills a new index from one snapshot; the alias leads there when all of it is there."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from esker.engine.iceberg.file_frame import SnapshotFiles
from esker.engine.iceberg.table import TableId
from esker.errors import (
    ConsumerBusy,
    Interrupted,
    InvalidProject,
    ReindexNeeded,
    ReindexUnsuitable,
    ReindexUnverified,
    TargetUnavailable,
    TaskOutlived,
)
from esker.events import Delivered, DeliveryStep, Event
from esker.ledger.leases import held
from esker.ledger.retention import trim
from tests.deliver.meeting import Meeting
from tests.deliver.shelf import Heap
from tests.deliver.told import Tell, Told, use
from tests.folder import Folder
from tests.load.works import CHANGES, WORKS
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.spark

WORK = {"transform": "transforms/works.py:to_work"}


def filled(told: Told, files: int = 4) -> dict[str, str]:
    """Load some files, and return the titles that an index must have."""
    for number in range(files):
        told.load(*({"id": number * 10 + place, "title": f"{number}"} for place in range(10)))
    told.load({"id": 0, "title": "gone"}, {"id": 1, "title": "hidden"}, {"id": 2, "title": "new"})
    titles = {str(number): f"{number // 10}" for number in range(files * 10)}
    return {id_: title for id_, title in titles.items() if id_ not in ("0", "1")} | {"2": "new"}


def refs(told: Told, table: str) -> set[str]:
    return {row["name"] for row in told.works.sql(f"SELECT name FROM {table}.refs")}


def test_a_reindex_fills_a_new_index_and_deliveries_follow_it(tell: Tell) -> None:
    """Deleted rows and those that are not wanted are left out; later changes come behind it."""
    told = tell(**WORK, pipeline={"delete_when": "title = 'gone'"}, reindex={"rows": 15})
    wanted = filled(told)
    told.deliver()
    assert told.shelf.alias == "first"
    result = told.reindex(into="second", parallel=2)
    assert (result.status, result.until, result.rows.rows) == ("succeeded", 5, 39)
    assert (result.rows.sent, result.rows.unwanted) == (38, 1)
    assert told.shelf.alias == "second"
    assert told.titles() == wanted
    told.load({"id": 2, "title": "newer"}, {"id": 3, "title": "gone"})
    result = told.deliver()
    assert (result.since, result.until) == (5, 6)
    del wanted["3"]
    assert told.titles() == wanted | {"2": "newer"}
    assert refs(told, WORKS) == {"main"}


def test_changes_that_arrive_meanwhile_are_there_before_the_alias_is_switched(tell: Tell) -> None:
    """Whatever is published while tasks run is not in the snapshot; nobody sees it in its old form."""
    told = tell(reindex={"rows": 15}, forgets=True, pipeline={"delete_when": "title = 'gone'"})
    wanted = filled(told) | {"1": "hidden"}
    told.deliver()
    seen = []

    def meanwhile(event: Event) -> None:
        if not isinstance(event, Delivered):
            return
        if event.step is DeliveryStep.TASK_DONE and event.detail == "0":
            told.load(
                {"id": 2, "title": "meanwhile"}, {"id": 99, "title": "also"}, {"id": 3, "title": "gone"}
            )
        if event.step is DeliveryStep.MOVED:
            told.load({"id": 4, "title": "later"})
        seen.extend([told.titles()] if event.step is DeliveryStep.SWITCHED else [])

    result = told.works.project.reindex("search", parallel=1, listen=meanwhile)
    del wanted["3"]
    wanted |= {"2": "meanwhile", "99": "also", "4": "later"}
    assert seen == [wanted]
    assert (result.until, result.changesets) == (7, 2)
    assert told.deliver().changesets == 0
    assert told.titles() == wanted
    assert refs(told, WORKS) == {"main"}


def sent_to(told: Told, shelf: str) -> int:
    with told.shelf.connected() as connection:
        query = "select count(*) from sent where shelf = ?"
        found: int = connection.execute(query, (shelf,)).fetchone()[0]
    return found


@pytest.mark.parametrize("step", [DeliveryStep.MOVED, DeliveryStep.STORED, DeliveryStep.SWITCHED])
def test_a_delivery_ends_a_reindex_that_was_stopped_as_it_ended(tell: Tell, step: DeliveryStep) -> None:
    """Nothing more is sent to what it replaces, and the next reindex is a new one."""
    told = tell(forgets=True, pipeline={"delete_when": "title = 'gone'"})
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "refused"}, {"id": 3, "title": "c"})
    told.deliver()

    def stop(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.VERIFIED:
            told.load({"id": 1, "title": "b"}, {"id": 3, "title": "gone"})
        if isinstance(event, Delivered) and event.step is step:
            raise RuntimeError("stop")

    assert told.works.project.reindex("search", into="second", listen=stop).error is not None
    with pytest.raises(ReindexUnsuitable, match="search") as caught:
        told.works.project.run_reindex_task("search", 0)
    assert "done" in caught.value.reason
    before = sent_to(told, "first")
    told.load({"id": 2, "title": "good"}, {"id": 4, "title": "d"})
    result = told.deliver(retry_dead=True)
    assert "a reindex was ended that had been stopped: index second" in result.notes
    assert (result.until, result.dead) == (3, 0)
    assert (told.shelf.alias, sent_to(told, "first")) == ("second", before)
    assert told.titles() == {"1": "b", "2": "good", "4": "d"}
    assert refs(told, WORKS) == {"main"}
    assert refs(told, CHANGES) == {"main", "esker-consumer-shop-search"}
    assert told.deliver().notes == ()
    result = told.reindex(into="third")
    assert (result.notes, result.rows.sent, told.shelf.alias) == (("index third",), 3, "third")


def test_an_index_that_cannot_be_brought_up_to_date_is_given_up(tell: Tell) -> None:
    """The alias stays, and the next reindex is a new one."""
    told = tell(id=["id"])
    pipeline = Folder.files_pipeline(
        table="shop.works", mode="append", columns={"id": "int", "title": "string"}
    )
    told.works.folder.document["pipelines"]["works"] = pipeline
    told.change()
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.deliver()

    def meanwhile(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.VERIFIED:
            told.works.sql(f"DELETE FROM {WORKS} WHERE id = 1")

    result = told.works.project.reindex("search", into="second", listen=meanwhile)
    assert isinstance(result.error, ReindexNeeded)
    assert told.shelf.alias == "first"
    assert "esker-reindex-shop-search" not in refs(told, WORKS)
    with pytest.raises(ReindexNeeded):
        told.deliver()
    assert told.reindex(into="third").notes == ("index third",)
    assert told.titles() == {"2": "b"}


def test_a_reindex_that_was_stopped_goes_on(tell: Tell) -> None:
    """Tasks that are done are not done again; the snapshot is the same."""
    told = tell(reindex={"rows": 15})
    wanted = filled(told) | {"0": "gone", "1": "hidden"}
    down = told.shelf.path.with_name("down")

    def stop(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.TASK_DONE and event.detail == "1":
            down.touch()

    result = told.works.project.reindex("search", parallel=1, listen=stop)
    assert isinstance(result.error, TargetUnavailable)
    assert told.titles() == {}
    sent = len(told.shelf.sent())
    told.load({"id": 2, "title": "later"})
    down.unlink()
    result = told.reindex(parallel=1)
    assert "gone on with what had begun" in result.notes
    assert result.rows.rows == 41
    assert len(told.shelf.sent()) == 41
    assert 10 <= sent < 40
    assert told.titles() == wanted | {"2": "later"}
    assert told.deliver().changesets == 0


def test_the_alias_stays_when_counts_do_not_match(tell: Tell) -> None:
    """Somebody else's documents in the new index keep it from being used."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.shelf.make("second")
    with told.shelf.connected() as connection:
        connection.execute("insert into documents values ('second', 'x', 1, '{}')")
    with pytest.raises(ReindexUnverified, match="has 2 documents, and 1 were wanted"):
        told.reindex(into="second")
    assert told.shelf.alias == "first"
    with pytest.raises(ReindexUnsuitable, match="search") as caught:
        told.reindex(into="third")
    assert "second" in caught.value.reason
    told.reindex(into="third", anew=True)
    assert told.shelf.alias == "third"
    assert told.titles() == {"1": "a"}


def test_rows_of_one_id_come_in_order(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with rows of other tables, and in whatever order Spark reads the files."""
    items = {"table": "shop.items", "on": {"id": "work_id"}, "many": True}
    told = tell(versions=False, id=["id"], enrich={"items": items})
    document, columns = told.works.folder.document["pipelines"], {"id": "int", "title": "string"}
    document["works"] = Folder.files_pipeline(table="shop.works", mode="append", columns=columns)
    document["items"] = Folder.files_pipeline("items/*.csv", table="shop.items", mode="upsert", key=["id"])
    told.change()
    told.works.project.load("items", [{"id": 1, "work_id": 3, "name": "item"}])
    for number in range(3):
        told.load(*({"id": id_, "title": f"{number}"} for id_ in range(10)))
    read = SnapshotFiles.frame
    monkeypatch.setattr(SnapshotFiles, "frame", lambda files, paths: read(files, reversed(list(paths))))
    told.reindex(into="second")
    assert told.titles() == {str(id_): "2" for id_ in range(10)}
    changesets = [changeset for id_, changeset, _ in told.shelf.sent() if id_ == "3"]
    assert len(changesets) == 3
    assert changesets == sorted(changesets)


def test_tasks_can_be_done_elsewhere(tell: Tell) -> None:
    """Listed, done one by one in any order, and ended by one more call."""
    told = tell(reindex={"rows": 15})
    wanted = filled(told) | {"0": "gone", "1": "hidden"}
    project = told.works.project
    plan = project.reindex_plan("search")
    assert [task.is_done for task in plan.tasks] == [False] * len(plan.tasks)
    assert len(plan.tasks) >= 3
    told.load({"id": 2, "title": "later"})
    told.deliver()
    for task in reversed(plan.tasks):
        other = told.works.folder.open()
        assert other.run_reindex_task("search", task.number).rows.rows <= task.rows
    assert all(task.is_done for task in project.reindex_plan("search").tasks)
    with pytest.raises(ReindexUnsuitable, match="search"):
        project.run_reindex_task("search", 99)
    assert told.shelf.alias == "first"
    told.reindex()
    assert told.titles() == wanted | {"2": "later"}


def test_tasks_are_done_at_a_time_and_no_faster_than_the_rate(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks are inside at once, and share the rate; one that is done by itself has its own."""
    told = tell(reindex={"rows": 6})
    for start in (0, 10):
        told.load(*({"id": start + place, "title": "a"} for place in range(6)))
    meeting = Meeting(told.shelf.path)
    use(monkeypatch, meeting)
    result = told.reindex(into="second", parallel=2, rate=8)
    assert result.rows.sent == 12
    # Four a second for each of them.
    assert meeting.lots() == [[4, 2], [4, 2]]
    assert result.seconds >= 12 / 8

    meeting.path.unlink()
    use(monkeypatch, replace(meeting, senders=1))
    told.works.project.reindex_plan("search", into="third")
    told.works.project.run_reindex_task("search", 1, rate=5)
    assert meeting.lots() == [[5, 1]]


def test_nobody_waits_for_other_tasks_when_one_fails(tell: Tell) -> None:
    """With a rate, they would go on for long."""
    told = tell(reindex={"rows": 90})
    told.load({"id": 1000, "title": "a"})
    told.load(*({"id": number, "title": "a"} for number in range(90)))

    def fail(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.TASK_SENT and event.detail == "0":
            raise RuntimeError("stop")

    result = told.works.project.reindex("search", parallel=2, rate=2, listen=fail)
    assert result.error is not None
    assert result.seconds < 60
    assert len(told.shelf.sent()) < 80


def test_an_interruption_stops_all_tasks(tell: Tell) -> None:
    """Ctrl-C ends it at once; the next one goes on."""
    told = tell(reindex={"rows": 90})
    for start in (0, 100):
        told.load(*({"id": start + place, "title": "a"} for place in range(90)))

    def interrupt() -> None:
        until = time.monotonic() + 120
        while not told.shelf.sent() and time.monotonic() < until:
            time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Interrupted):
        told.works.project.reindex("search", into="second", parallel=2, rate=2)
    assert len(told.shelf.sent()) < 100
    assert told.shelf.alias == "first"
    told.reindex()
    assert len(told.titles()) == 180


def test_a_consumer_that_is_busy(tell: Tell) -> None:
    """Neither is a reindex begun nor is the consumer let go of while somebody delivers to it."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    project = told.works.project
    asked: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("search", project.reindex_plan),
        ("gone", project.forget_consumer),
    )
    for name, ask in asked:
        lease = f"{project.project.state_key}/consumer/{name}"
        with held(project.state, lease), pytest.raises(ConsumerBusy):
            ask(name)
        ask(name)


def test_some_ids_are_sent_again(tell: Tell) -> None:
    """As they are, also where nothing changed, and as deletes where they are not there."""
    told = tell()
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.load({"id": 3, "title": "c"})
    told.deliver()
    with told.shelf.connected() as connection:
        connection.execute("update documents set body = '{}' where id = '1'")
        connection.execute("insert into documents values ('first', '7', 1, '{}')")
    result = told.reindex(ids=["1", "7", "1"])
    assert (result.rows.sent, result.rows.deleted) == (1, 1)
    assert told.titles() == {"1": "a", "2": "b", "3": "c"}


def test_dead_letters_of_a_reindex(tell: Tell) -> None:
    """A refused row keeps nobody from switching; letters of before are done with."""
    told = tell()
    told.load({"id": 1, "title": "refused"}, {"id": 2, "title": "b"})
    assert told.deliver().dead == 1
    told.load({"id": 1, "title": "good"}, {"id": 3, "title": "refused"})
    result = told.reindex()
    assert (result.rows.sent, result.rows.dead, result.rows.resolved, result.dead) == (2, 1, 0, 1)
    assert told.titles() == {"1": "good", "2": "b"}


def test_a_target_that_is_no_index_gets_everything(tell: Tell) -> None:
    """All rows are sent to the same place, and later changes behind them."""
    told = tell(versions=False, to={"type": "python", "function": "keep.py:keep"})
    told.works.folder.write(
        "keep.py",
        "import json, pathlib\n"
        "def keep(messages):\n"
        "    with (pathlib.Path(__file__).parent / 'kept.jsonl').open('a') as file:\n"
        "        for each in messages:\n"
        "            file.write(json.dumps([each.id, each.op, each.changeset]) + '\\n')\n",
    )
    from esker.deliver.targets import open_target
    from esker.pipeline import deliver as delivering
    from esker.pipeline import reindex as reindexing

    with pytest.MonkeyPatch.context() as patch:
        for module in (delivering, reindexing):
            patch.setattr(
                module, "opened", lambda project, name: open_target(project.consumer(name).to, project)
            )
        told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
        told.load({"id": 1, "title": "c"})
        told.reindex()
        told.load({"id": 2, "title": "d"})
        told.deliver()
    lines = (told.works.folder.path / "kept.jsonl").read_text().splitlines()
    assert sorted(lines[:2]) == ['["1", "insert", 2]', '["2", "insert", 2]']
    assert lines[2:] == ['["2", "update", 3]']
    assert not any(name.startswith("esker-reindex") for name in refs(told, WORKS))
    assert "esker-consumer-shop-search" in refs(told, CHANGES)


@pytest.fixture
def heaped(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Somebody who is told that rows are gone, at a target that is no index."""
    told = tell(versions=False, pipeline={"delete_when": "title = 'gone'"})
    told.shelf.begin()
    use(monkeypatch, Heap(told.shelf))
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"}, {"id": 3, "title": "c"})
    told.deliver()
    return told


def test_what_is_no_index_is_told_what_was_due(heaped: Told) -> None:
    """Rows that were deleted are not among those that are sent, and are still there."""
    heaped.load({"id": 2, "title": "gone"})
    heaped.load({"id": 3, "title": "new"})
    result = heaped.reindex()
    assert (result.until, result.changesets) == (3, 2)
    assert heaped.titles() == {"1": "a", "3": "new"}
    assert heaped.deliver().changesets == 0


def test_a_delete_that_waits_behind_a_letter_is_told_by_a_reindex(heaped: Told) -> None:
    """Nothing of the row is in the snapshot, and the target still has it."""
    heaped.load({"id": 2, "title": "refused"})
    heaped.deliver()
    heaped.load({"id": 2, "title": "gone"})
    assert heaped.deliver().dead == 1
    result = heaped.reindex()
    assert (result.rows.deleted, result.rows.resolved, result.dead) == (1, 1, 0)
    assert heaped.titles() == {"1": "a", "3": "c"}


def test_changes_come_again_behind_the_rows_of_a_reindex_that_is_given_up(heaped: Told) -> None:
    """A task sends rows of its snapshot, as they are no longer."""
    project = heaped.works.project
    project.reindex_plan("search")
    heaped.load({"id": 2, "title": "gone"})
    heaped.deliver()
    assert heaped.titles() == {"1": "a", "3": "c"}
    project.run_reindex_task("search", 0)
    assert heaped.titles() == {"1": "a", "2": "b", "3": "c"}
    project.give_up_reindex("search")
    assert heaped.deliver().changesets == 1
    assert heaped.titles() == {"1": "a", "3": "c"}


def test_an_index_goes_on_from_its_own_offset_when_another_one_is_not_switched_to(tell: Tell) -> None:
    """What the new index had is not what the present one has."""
    told = tell(pipeline={"delete_when": "title = 'gone'"})
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.deliver()
    told.load({"id": 2, "title": "gone"})

    def stop(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.MOVED:
            raise RuntimeError("stop")

    assert told.works.project.reindex("search", into="second", listen=stop).error is not None
    told.works.project.reindex_plan("search", into="third", anew=True)
    told.works.project.give_up_reindex("search")
    assert told.deliver().changesets == 1
    assert (told.shelf.alias, told.titles()) == ("first", {"1": "a"})


def test_a_task_that_outlives_its_reindex_sends_nothing_more(tell: Tell) -> None:
    """Whoever started it may have lost sight of it, and started it again elsewhere."""
    told = tell()
    told.load(*({"id": number, "title": "a"} for number in range(90)))
    project = told.works.project
    project.reindex_plan("search", into="second")
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(project.run_reindex_task, "search", 0, rate=2)
        wait_until(lambda: bool(told.shelf.sent()), "the task's first row", 120)
        told.works.folder.open().give_up_reindex("search")
        with pytest.raises(TaskOutlived):
            task.result(timeout=120)
    assert len(told.shelf.sent()) < 90


def test_letters_of_the_present_index_stay_until_the_alias_is_switched(tell: Tell) -> None:
    """What arrives in a new index that is given up is still missing in the present one."""
    told = tell(reindex={"rows": 1})
    told.load({"id": 1, "title": "refused"})
    assert told.deliver().dead == 1
    told.load({"id": 1, "title": "good"})
    plan = told.works.project.reindex_plan("search", into="second")
    for task in plan.tasks:
        told.works.project.run_reindex_task("search", task.number)
    assert told.shelf.into("second").documents()["1"]["title"] == "good"
    assert [each["status"] for each in told.letters()] == ["dead"]
    for ways in ({"retry_dead": True}, {"ids": ["1"]}):
        with pytest.raises(ReindexUnsuitable) as caught:
            told.deliver(**ways) if "retry_dead" in ways else told.reindex(**ways)
        assert "second" in caught.value.reason
    told.reindex()
    assert told.titles() == {"1": "good"}
    assert told.deliver(retry_dead=True).dead == 0


def test_letters_of_a_new_index_are_not_done_with_by_the_present_one(tell: Tell) -> None:
    """A row that the new index refuses stays a dead letter, whatever is delivered meanwhile."""
    told = tell(start="now")
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 1, "title": "refused"}, {"id": 2, "title": "b"})
    [task] = told.works.project.reindex_plan("search", into="second").tasks[-1:]
    for number in range(task.number + 1):
        told.works.project.run_reindex_task("search", number)
    told.load({"id": 1, "title": "good"})
    assert told.deliver().dead == 1
    assert told.reindex().dead == 0
    assert told.titles() == {"1": "good", "2": "b"}


def test_what_comes_behind_a_first_reindex_stays_in_the_log(tell: Tell) -> None:
    """It has a tag of its own there: the consumer's would say that it was told what nobody sent yet."""
    told = tell(start="reindex")
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    told.works.project.reindex_plan("search", into="second")
    told.load({"id": 1, "title": "later"})
    engine, log = told.works.project.engine, TableId("lake", "shop.works__changes")
    trim(engine, log, timedelta(days=1), datetime.now(UTC) + timedelta(days=365))
    with pytest.raises(ReindexNeeded):
        told.deliver()
    told.reindex()
    told.deliver()
    assert told.titles() == {"1": "later", "2": "b"}
    assert refs(told, CHANGES) == {"main", "esker-consumer-shop-search"}
    assert refs(told, WORKS) == {"main"}


def test_a_task_begins_no_reindex(tell: Tell) -> None:
    """Who does tasks elsewhere holds no lease: a plan is made by whoever does."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    with pytest.raises(ReindexUnsuitable) as caught:
        told.works.project.run_reindex_task("search", 0)
    assert "--list-tasks" in caught.value.remedy
    assert told.shelf.sent() == []


def test_an_id_other_than_the_key_is_refused(tell: Tell) -> None:
    """A document would stay behind when its row gets another id."""
    with pytest.raises(InvalidProject, match="leave id: out"):
        tell(id=["title"])
    with pytest.raises(InvalidProject, match="leave id: out"):
        tell(id=["id", "title"])
