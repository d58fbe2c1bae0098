"""Consumers are told of every change, at least once, and of none behind a newer one."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from esker.deliver import delivery as delivering
from esker.deliver.feed import Feed, Subscription
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import ConsumerFenced, LogAhead, ReindexNeeded, TargetUnavailable
from esker.events import Delivered, DeliveryStep, Event
from esker.ledger import leases as leasing
from esker.ledger.offsets import stored_offset
from esker.ledger.retention import trim
from tests.deliver.thief import Thief
from tests.deliver.told import Tell, Told, use
from tests.load.works import CHANGES

pytestmark = pytest.mark.spark

LOG = TableId("lake", "shop.works__changes")
TAG = "esker-consumer-shop-search"
START = "esker-start-shop-search"


def offset(told: Told) -> int | None:
    found = stored_offset(told.works.project.state, "shop", "search")
    return None if found is None else found.changeset


def tags(told: Told, table: str = CHANGES) -> dict[str, int]:
    return {row["name"]: row["snapshot_id"] for row in told.works.sql(f"SELECT * FROM {table}.refs")}


def test_documents_follow_the_table(tell: Tell) -> None:
    """Inserts, updates and deletes arrive; what the transform does not want is deleted."""
    told = tell(transform="transforms/works.py:to_work", pipeline={"delete_when": "title = 'gone'"})
    told.load({"id": 1, "title": " a "}, {"id": 2, "title": "b"}, {"id": 3, "title": "c"})
    result = told.deliver()
    assert (result.since, result.until, result.changesets) == (0, 1, 1)
    assert (result.rows.sent, result.rows.deleted) == (3, 0)
    assert told.titles() == {"1": "a", "2": "b", "3": "c"}
    told.load({"id": 1, "title": "A"}, {"id": 2, "title": "gone"}, {"id": 3, "title": "hidden"})
    result = told.deliver()
    assert (result.since, result.until, result.rows.sent, result.rows.deleted) == (1, 2, 1, 2)
    assert result.rows.unwanted == 1
    assert told.titles() == {"1": "A"}
    told.load({"id": 2, "title": "back"})
    told.deliver()
    assert told.titles() == {"1": "A", "2": "back"}
    assert told.shelf.versions() == {"1": 2, "2": 3, "3": 2}
    nothing = told.deliver()
    assert (nothing.changesets, nothing.rows.rows) == (0, 0)


def test_only_the_newest_change_of_a_row_is_sent_where_versions_are_kept(tell: Tell) -> None:
    """Of several changesets in one delivery, an index gets each document once."""
    told = tell()
    for number in range(1, 4):
        told.load({"id": 1, "title": f"{number}"}, {"id": number * 10, "title": "x"})
    told.deliver()
    assert told.shelf.sent() == [
        ("10", 1, "insert"),
        ("20", 2, "insert"),
        ("1", 3, "update"),
        ("30", 3, "insert"),
    ]


def test_every_change_is_sent_in_order_where_versions_are_not_kept(tell: Tell) -> None:
    """A queue or a webhook sees all changes of a row, the first one first; in this process and with Spark."""
    for spark in (10_000, 0):
        told = tell(versions=False, batch={"spark": spark})
        for number in range(1, 5):
            told.load({"id": 1, "title": f"{number}"}, {"id": 2, "title": f"{number}"})
        told.deliver()
        for id_ in ("1", "2"):
            assert [changeset for each, changeset, _ in told.shelf.sent() if each == id_] == [1, 2, 3, 4]
        assert told.titles() == {"1": "4", "2": "4"}


def test_delivering_twice_does_no_harm(tell: Tell) -> None:
    """An old changeset that comes again does not replace what a newer one brought."""
    told = tell()
    told.load({"id": 1, "title": "old"})
    told.deliver()
    first = stored_offset(told.works.project.state, "shop", "search")
    assert first is not None
    told.load({"id": 1, "title": "new"})
    told.deliver()
    told.works.folder.lose_state()
    told.works.project = told.works.folder.open()
    told.works.sql(f"ALTER TABLE {CHANGES} REPLACE TAG `{TAG}` AS OF VERSION {first.snapshot}")
    assert told.deliver().until == 2
    assert told.titles() == {"1": "new"}
    # All of it again, with Spark.
    told.change(batch={"spark": 0})
    told.works.sql(f"ALTER TABLE {CHANGES} DROP TAG `{TAG}`")
    told.works.folder.lose_state()
    told.works.project = told.works.folder.open()
    assert told.deliver().since == 0
    assert told.titles() == {"1": "new"}


def test_many_changes_are_sent_by_spark(tell: Tell) -> None:
    """Spark's tasks transform and send as this process does, with code of the project."""
    told = tell(transform="transforms/works.py:to_work", batch={"spark": 5, "send": 7})
    told.load(*({"id": number, "title": f" {number} "} for number in range(100)))
    told.load(
        {"id": 1, "title": "one"},
        {"id": 2, "title": "hidden"},
        *({"id": n, "title": "x"} for n in range(3, 9)),
    )
    result = told.deliver()
    assert (result.rows.sent, result.rows.unwanted, result.rows.deleted) == (99, 1, 1)
    wanted = {str(number): f"{number}" for number in range(100)} | {"1": "one"}
    wanted |= {str(number): "x" for number in range(3, 9)}
    del wanted["2"]
    assert told.titles() == wanted


def test_the_offset_is_a_tag_that_survives_the_state_database(tell: Tell) -> None:
    """A lost database costs nothing: the tag on the log says where to go on."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 2, "title": "b"})
    assert tags(told)[TAG] == told.works.snapshots(CHANGES)[0]
    told.works.folder.lose_state()
    told.works.project = told.works.folder.open()
    result = told.deliver()
    assert (result.since, result.until) == (1, 2)
    assert tags(told)[TAG] == told.works.snapshots(CHANGES)[1]


def test_what_was_not_delivered_is_not_forgotten(tell: Tell) -> None:
    """Old changes stay in the log until the consumer has them."""
    told = tell()
    in_a_year = datetime.now(UTC) + timedelta(days=365)
    for number in range(1, 4):
        told.load({"id": number, "title": "a"})
        if number == 1:
            told.deliver()
    assert trim(told.works.project.engine, LOG, timedelta(days=30), in_a_year).first == 2
    told.deliver()
    assert told.titles() == {"1": "a", "2": "a", "3": "a"}


@pytest.mark.parametrize("has_new_column", [False, True])
def test_changes_that_leave_the_log_while_they_are_delivered_arrive(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, has_new_column: bool
) -> None:
    """Spark reads the log as it was when the delivery looked at it, also where it got a column since."""
    told = tell(batch={"spark": 0})
    for number in range(1, 4):
        told.load({"id": number, "title": "a"})
    if has_new_column:
        told.works.sql(f"ALTER TABLE {CHANGES} ADD COLUMN subtitle STRING")
        told.works.project.engine.handles.forget(LOG.sql)
    opened = delivering.open_feed

    def opened_before_a_trim(engine: Engine, subscription: Subscription) -> Feed:
        feed = opened(engine, subscription)
        assert trim(engine, LOG, timedelta(days=30), datetime.now(UTC) + timedelta(days=365)).first == 4
        return feed

    monkeypatch.setattr(delivering, "open_feed", opened_before_a_trim)
    result = told.deliver()
    assert (result.until, result.rows.sent) == (3, 3)
    assert told.titles() == {"1": "a", "2": "a", "3": "a"}


def test_the_first_delivery_keeps_the_log_from_its_beginning_on(tell: Tell) -> None:
    """What a new consumer was not told yet stays in the log, also when its first delivery fails."""
    told = tell(batch={"rows": 1})
    for number in range(1, 4):
        told.load({"id": number, "title": "a"})
    down = told.shelf.path.with_name("down")
    down.touch()
    with pytest.raises(TargetUnavailable):
        told.deliver()
    down.unlink()
    assert START in tags(told)
    assert TAG not in tags(told)
    in_a_year = datetime.now(UTC) + timedelta(days=365)
    assert trim(told.works.project.engine, LOG, timedelta(days=30), in_a_year).first == 1
    told.works.folder.lose_state()
    told.works.project = told.works.folder.open()
    assert told.deliver().since == 0
    assert told.titles() == {"1": "a", "2": "a", "3": "a"}
    assert set(tags(told)) == {"main", TAG}
    assert trim(told.works.project.engine, LOG, timedelta(days=30), in_a_year).first == 4


def test_who_comes_too_late_is_asked_to_reindex(tell: Tell) -> None:
    """A log that begins behind the offset, and one with a gap, stop the delivery with the remedy."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.load({"id": 2, "title": "b"})
    trim(told.works.project.engine, LOG, timedelta(days=30), datetime.now(UTC) + timedelta(days=365))
    told.load({"id": 3, "title": "c"})
    with pytest.raises(ReindexNeeded, match="cannot go on") as caught:
        told.deliver()
    assert "the oldest one there is 3" in caught.value.reason
    assert "esker reindex search" in caught.value.remedy
    assert told.titles() == {}
    told.reindex()
    assert told.titles() == {"1": "a", "2": "b", "3": "c"}
    told.load({"id": 1, "title": "z"})
    told.deliver()
    assert told.titles() == {"1": "z", "2": "b", "3": "c"}


def test_a_gap_stops_the_delivery(tell: Tell) -> None:
    """Changes that were published without a log are not skipped in silence."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.works.sql(f"ALTER TABLE {CHANGES} SET TBLPROPERTIES ('esker.gaps' = '[[2,2]]')")
    told.works.project.engine.handles.forget(LOG.sql)
    told.load({"id": 2, "title": "b"})
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "Changeset 2 of table" in caught.value.reason


def test_an_offset_of_another_run_stops_the_delivery(tell: Tell) -> None:
    """A log that was restored may have another changeset under the same number."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.deliver()
    state = told.works.project.state
    with state.begin() as connection:
        text = connection.exec_driver_sql("select offset from esker_offsets").scalar()
        changed = json.dumps(json.loads(str(text)) | {"run": "another"})
        connection.exec_driver_sql("update esker_offsets set offset = ?", (changed,))
    told.load({"id": 2, "title": "b"})
    with pytest.raises(ReindexNeeded) as caught:
        told.deliver()
    assert "was read was of run another" in caught.value.reason


@pytest.mark.parametrize("spark", [10_000, 0])
def test_an_index_that_somebody_removed_asks_for_a_reindex(tell: Tell, spark: int) -> None:
    """An empty one in its place would lack all that was told before; a reindex makes it whole."""
    told = tell(batch={"spark": spark})
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "refused"})
    told.deliver()
    told.shelf.remove()
    assert told.deliver().rows.rows == 0
    told.load({"id": 3, "title": "c"})
    for retries in (False, True, False):
        with pytest.raises(ReindexNeeded) as caught:
            told.deliver(retry_dead=retries)
        assert "the shelf: The alias leads nowhere." in caught.value.reason
    assert (told.shelf.documents(), offset(told)) == ({}, 1)
    told.reindex()
    told.deliver()
    assert told.titles() == {"1": "a", "3": "c"}


def test_an_index_is_made_until_something_was_sent(tell: Tell) -> None:
    """A target that was down at first, or removed before the first message, has lost nothing."""
    told = tell(start="now")
    told.load({"id": 1, "title": "a"})
    told.deliver()
    down = told.shelf.path.with_name("down")
    down.touch()
    told.load({"id": 2, "title": "b"})
    with pytest.raises(TargetUnavailable):
        told.deliver()
    told.shelf.remove()
    down.unlink()
    told.deliver()
    assert told.titles() == {"2": "b"}
    told.shelf.remove()
    told.load({"id": 3, "title": "c"})
    with pytest.raises(ReindexNeeded):
        told.deliver()


def test_a_new_consumer_starts_where_it_is_told_to(tell: Tell) -> None:
    """From now on, or with a reindex; and one that is told of nothing else."""
    told = tell(start="now")
    told.load({"id": 1, "title": "a"})
    assert told.deliver().changesets == 0
    told.load({"id": 2, "title": "b"})
    told.deliver()
    assert told.titles() == {"2": "b"}
    other = tell(start="reindex")
    other.load({"id": 1, "title": "a"})
    with pytest.raises(ReindexNeeded, match="search"):
        other.deliver()
    other.reindex()
    other.load({"id": 2, "title": "b"})
    other.deliver()
    assert other.titles() == {"1": "a", "2": "b"}
    quiet = tell(notify="on")
    assert "not published" in quiet.deliver().notes[0]
    quiet.load({"id": 1, "title": "a"})
    quiet.deliver()
    assert quiet.shelf.sent() == [("1", 1, "insert")]
    assert quiet.shelf.documents() == {"1": None}


def test_a_target_that_is_down_loses_nothing(tell: Tell) -> None:
    """The offset stays, in this process and with Spark; what was sent before stays, too."""
    for spark in (10_000, 0):
        told = tell(batch={"rows": 1, "spark": spark})
        told.load({"id": 1, "title": "a"})
        told.deliver()
        down = told.shelf.path.with_name("down")
        down.touch()
        told.load({"id": 2, "title": "b"})
        with pytest.raises(TargetUnavailable, match="the shelf") as caught:
            told.deliver()
        assert caught.value.exit_status == 4
        assert offset(told) == 1
        [line] = told.works.project.deliver_all().consumers
        assert (line.status, line.since, line.until) == ("failed", 1, 1)
        down.unlink()
        assert told.deliver().until == 2
        assert told.titles() == {"1": "a", "2": "b"}


def test_steps_are_bounded_and_never_divide_a_changeset(tell: Tell) -> None:
    """The offset is stored after about so many rows."""
    told = tell(batch={"rows": 3})
    for number in range(1, 6):
        told.load({"id": number, "title": "a"}, {"id": number + 100, "title": "a"})
    seen: list[int | None] = []
    result = told.deliver(lambda _: seen.append(offset(told)))
    assert (result.changesets, offset(told)) == (5, 5)
    assert set(seen) - {None} == {1, 2, 3, 4, 5}
    assert len(told.titles()) == 10


def test_who_was_stopped_for_long_does_not_overwrite_the_offset(tell: Tell) -> None:
    """A reindex that took over meanwhile has set it back, and led the alias elsewhere."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    told.deliver()
    told.load({"id": 1, "title": "b"})
    other = told.works.folder.open()

    def take_over(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.SENT:
            with told.works.project.state.begin() as connection:
                connection.exec_driver_sql("update esker_leases set until = '2000-01-01T00:00:00'")
            taken = other.reindex("search", into="second", parallel=1)
            assert taken.status == "succeeded"
            told.load({"id": 1, "title": "c"})

    with pytest.raises(ConsumerFenced) as caught:
        told.deliver(take_over)
    assert caught.value.exit_status == 5
    assert offset(told) == 2
    assert told.titles() == {"1": "b"}
    told.deliver()
    assert told.titles() == {"1": "c"}


@pytest.mark.parametrize("spark", [10_000, 0], ids=["here", "spark"])
def test_who_lost_its_lease_sends_nothing_more(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, spark: int
) -> None:
    """Somebody else sends already: older states would come last. Spark's tasks are stopped, too."""
    told = tell(versions=False, batch={"send": 1, "spark": spark})
    told.load(*({"id": number, "title": "a"} for number in range(40)))
    monkeypatch.setattr(leasing, "_RENEWAL", 0.05)
    state = told.works.folder.path / ".esker" / "state.db"
    use(monkeypatch, Thief(told.shelf.path, keeps_versions=False, state=state, pause=1))
    with pytest.raises(ConsumerFenced):
        told.deliver()
    assert offset(told) is None
    time.sleep(4)  # Spark lets a Python process of a stopped job live for two seconds
    sent = len(told.shelf.sent())
    assert 1 <= sent < 20
    time.sleep(2)
    assert len(told.shelf.sent()) == sent


def test_a_log_that_is_ahead_says_what_helps(tell: Tell) -> None:
    """A reindex could not go on behind it either: the error is the log's own."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    before = told.works.snapshots()[-1]
    told.load({"id": 2, "title": "b"})
    told.deliver()
    state = told.works.properties()
    assert state["esker.head"]
    told.works.sql(f"CALL lake.system.rollback_to_snapshot('shop.works', {before})")
    head = json.dumps(json.loads(state["esker.head"]) | {"changeset": 1})
    told.works.sql(f"ALTER TABLE lake.shop.works SET TBLPROPERTIES ('esker.head' = '{head}')")
    told.works.project = told.works.folder.open()
    for deliver in (told.deliver, told.reindex):
        with pytest.raises(LogAhead) as caught:
            deliver()
        assert "esker fsck" in caught.value.remedy
