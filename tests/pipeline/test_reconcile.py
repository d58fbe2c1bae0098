"""Comparing a source with its table finds what runs never see, and repairs it: not more than was approved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import stamina

from esker.errors import Held, PartsMissing, PipelineBusy, ReconcileUnsuitable
from esker.events import Event, Reached, Step
from esker.ledger.leases import held
from esker.pipeline.reconcile import Reconciliation
from tests.folder import Folder
from tests.sources.http.test_http import by_windows, day
from tests.sources.oai_server import Fault, Feed, Query, moment, send, serving
from tests.sources.rest_server import Api
from tests.sources.rest_server import serving as serving_api
from tests.sources.test_jdbc_sqlite import execute
from tests.sources.test_jdbc_sqlite import shop as database
from tests.sources.test_oai_pmh import contents, fill, harvest

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]
Show = Callable[[dict[int, tuple[str, str]]], None]
"""Lets a source hold these rows: by id, date and value."""
HEADER = ["id", "at", "v"]


@pytest.fixture
def feed() -> Iterator[Feed]:
    with serving(Feed(moment("13:00"))) as feed, stamina.set_testing(True, attempts=2, cap=True):
        yield feed


def shop(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A project that has loaded twenty rows."""
    pipeline = Folder.files_pipeline(
        mode="upsert",
        key=["id"],
        columns={"id": "bigint", "at": "bigint", "v": "string"},
        source={"on_changed": "ignore"},
        **keys,
    )
    folder = make_folder(pipelines={"sales": pipeline})
    write(folder, dict.fromkeys(range(20), "a"))
    folder.run()
    return folder


def write(folder: Folder, rows: dict[int, str]) -> None:
    folder.write_csv("landing/a.csv", HEADER, [(number, 1, value) for number, value in rows.items()])


def live(folder: Folder) -> dict[int, str]:
    return {row[0]: row[1] for row in folder.rows("shop.sales", "id", "v", "deleted") if not row[2]}


def _broken(handler: BaseHTTPRequestHandler) -> None:
    send(handler, 500, b"broken")


def _status(status: int) -> Fault:
    return lambda handler: send(handler, status, b"no")


def _oai_error(handler: BaseHTTPRequestHandler) -> None:
    root = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    send(handler, 200, f'{root}<error code="cannotDisseminateFormat">no</error></OAI-PMH>'.encode())


def counts(found: Reconciliation) -> tuple[int, int, int]:
    return found.missing, found.different, found.vanished


@pytest.mark.parametrize("lane", ["small", "large"])
def test_a_source_that_is_read_as_a_whole(make_folder: MakeFolder, lane: str) -> None:
    """What differs is counted and named, and nothing is changed before a repair is asked for."""
    folder = shop(make_folder, lane=lane)
    project = folder.open()
    same = project.reconcile("sales")
    assert same.is_same
    assert (same.source_keys, same.table_keys) == (20, 20)
    now = dict.fromkeys(range(1, 20), "a") | {3: "b", 4: "b", 50: "c", 51: "c", 52: "c"}
    write(folder, now)
    before = live(folder)
    found = project.reconcile("sales")
    assert counts(found) == (3, 2, 1)
    assert (found.source_keys, found.table_keys) == (22, 20)
    assert found.examples == {"missing": ["50", "51", "52"], "different": ["3", "4"], "vanished": ["0"]}
    assert live(folder) == before
    repaired = project.reconcile("sales", repair=True)
    assert [result.status for result in repaired.repairs] == ["succeeded"]
    assert live(folder) == now
    assert project.reconcile("sales").is_same
    assert project.reconcile("sales", repair=True).repairs == ()


def test_too_many_have_vanished(make_folder: MakeFolder) -> None:
    """More than a tenth is deleted only when a person has seen the figure."""
    folder = shop(make_folder)
    project = folder.open()
    write(folder, dict.fromkeys(range(15), "a"))
    for approved in (None, 4):
        with pytest.raises(Held) as caught:
            project.reconcile("sales", repair=True, approved=approved)
        assert "--approve 5" in caught.value.remedy
    assert len(live(folder)) == 20
    project.reconcile("sales", repair=True, approved=5)
    assert len(live(folder)) == 15


def test_a_row_that_cannot_be_read_has_not_vanished(make_folder: MakeFolder) -> None:
    """It is in the source, whatever is wrong with it."""
    folder = shop(make_folder)
    rows: list[tuple[int, int | str, str]] = [(number, 1, "a") for number in range(19)]
    folder.write_csv("landing/a.csv", HEADER, [*rows, (19, "soon", "a")])
    assert folder.open().reconcile("sales").is_same


def test_a_feed(make_folder: MakeFolder, feed: Feed) -> None:
    """A feed that lost a record, changed one without a new date, and brought one with an old date."""
    expected: dict[str, str] = fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()
    project = folder.open()
    assert project.reconcile("sales").is_same
    feed.records = [record for record in feed.records if record.id != "r1"]
    feed.put("r2", "12:10", "changed")
    feed.put("late", "12:01", "late")
    now = expected | {"r2": "changed", "late": "late"}
    del now["r1"]
    found = project.reconcile("sales")
    assert counts(found) == (1, 1, 1)
    assert found.examples == {"missing": ["late"], "different": ["r2"], "vanished": ["r1"]}
    repaired = project.reconcile("sales", repair=True)
    assert [result.rows.read for result in repaired.repairs] == [2, 1]
    assert contents(folder) == now
    asked = [query["identifier"] for query in feed.asked if query["verb"] == "GetRecord"]
    assert sorted(asked) == ["late", "r1", "r2"]
    assert project.reconcile("sales").is_same


def test_a_feed_that_does_not_answer_for_a_window(make_folder: MakeFolder, feed: Feed) -> None:
    """What could not be read has not vanished."""
    fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()
    feed.always.append((lambda query: query.get("from", "").startswith("2026-01-01T12:15"), _broken))
    with pytest.raises(PartsMissing):
        folder.open().reconcile("sales", repair=True)
    assert len(contents(folder)) == 10


def _in_the_middle(feed: Feed, act: Callable[[], None]) -> None:
    """Let something happen before the feed answers for a window in the middle of a harvest."""

    def concerns(query: Query) -> bool:
        return query.get("from", "").startswith("2026-01-01T12:15")

    def answer(handler: BaseHTTPRequestHandler) -> None:
        act()
        send(handler, 200, feed.answer(dict(parse_qsl(urlsplit(handler.path).query))).encode())

    fault: Fault = answer
    feed.faults.append((concerns, fault))


def test_what_runs_load_meanwhile_has_not_vanished(make_folder: MakeFolder, feed: Feed) -> None:
    """A run beside the harvest brings records that are younger than what the harvest reads."""
    expected = fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()

    def run() -> None:
        feed.now = moment("13:30")
        feed.put("new", "13:05", "new")
        folder.run()

    _in_the_middle(feed, run)
    found = folder.open().reconcile("sales", repair=True)
    assert counts(found) == (0, 0, 0)
    assert contents(folder) == expected | {"new": "new"}


@pytest.mark.parametrize("runs", [True, False])
def test_what_moves_meanwhile_has_not_vanished(make_folder: MakeFolder, feed: Feed, runs: bool) -> None:
    """A record that changes gets a new date: it leaves a window that is still to be read."""
    expected = fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()

    def change() -> None:
        feed.now = moment("13:20")
        feed.put("r9", "13:05", "moved")
        feed.put("r8", "13:19", "moved")
        if runs:
            folder.run()

    _in_the_middle(feed, change)
    found = folder.open().reconcile("sales", repair=True)
    assert counts(found) == (0, 0, 0)
    assert folder.open().reconcile("sales").vanished == 0
    folder.run()
    assert contents(folder) == expected | {"r9": "moved", "r8": "text 8"}
    feed.now = moment("13:45")
    folder.run()
    assert contents(folder) == expected | {"r9": "moved", "r8": "moved"}


def test_records_of_today_have_not_vanished(make_folder: MakeFolder) -> None:
    """With windows of a day, what changed today is younger than all that a run may read."""
    with serving_api(Api()) as api:
        api.records = [{"id": each, "changed": day(3), "v": "a"} for each in range(20)]
        folder = by_windows(make_folder, api, deletes="hard")
        folder.run()
        api.records[5] = {"id": 5, "changed": day(0, 0), "v": "b"}
        del api.records[7]
        found = folder.open().reconcile("sales", repair=True)
        assert (counts(found), found.examples["vanished"]) == ((0, 0, 1), ["7"])
        rows = folder.rows("shop.sales", "id", "v")
        assert sorted(rows) == [(each, "a") for each in range(20) if each != 7]


@contextmanager
def _at_a_web_api(make_folder: MakeFolder) -> Iterator[tuple[Folder, dict[int, tuple[str, str]], Show]]:
    with serving_api(Api()) as api:
        rows = {each: (day(3), "a") for each in range(10)}

        def show(rows: dict[int, tuple[str, str]]) -> None:
            api.records = [{"id": each, "changed": at, "v": v} for each, (at, v) in rows.items()]

        show(rows)
        yield by_windows(make_folder, api, deletes="hard"), rows, show


@contextmanager
def _in_a_database(make_folder: MakeFolder) -> Iterator[tuple[Folder, dict[int, tuple[str, str]], Show]]:
    rows = {each: (day(3), "a") for each in range(10)}
    source = {"cursor": "changed", "window": {"every": "1d", "start": day(5, 0)}}
    folder = database(make_folder, mode="upsert", order_by="changed", deletes="hard", source=source)

    def show(rows: dict[int, tuple[str, str]]) -> None:
        values = ", ".join(f"({each}, '{at}', '{v}')" for each, (at, v) in rows.items())
        execute(
            folder,
            "DROP TABLE IF EXISTS orders",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, changed TEXT, v TEXT)",
            f"INSERT INTO orders VALUES {values}",
        )

    show(rows)
    yield folder, rows, show


@pytest.mark.parametrize("source", [_at_a_web_api, _in_a_database])
def test_windows_of_a_source_that_knows_no_ids(make_folder: MakeFolder, source: Any) -> None:
    """All windows are read again: what came with an old date, changed under its own, or went, is mended."""
    with source(make_folder) as (folder, rows, show):
        folder.run()
        project = folder.open()
        now = rows | {2: (day(3), "changed"), 3: (day(4), "older"), 50: (day(4), "late")}
        del now[7]
        show(now)
        folder.run()
        assert sorted(folder.rows("shop.sales", "id", "v")) == [(each, "a") for each in range(10)]
        covered = [(line.since, line.until, line.status) for line in project.windows("sales")]
        found = project.reconcile("sales", repair=True)
        assert counts(found) == (1, 1, 1)
        assert found.examples == {"missing": ["50"], "different": ["2"], "vanished": ["7"]}
        assert [result.status for result in found.repairs] == ["succeeded", "succeeded"]
        kept = {each: v for each, (_, v) in now.items()} | {
            3: "a"
        }  # what is older than the table's row is no news
        assert sorted(folder.rows("shop.sales", "id", "v")) == sorted(kept.items())
        assert [(line.since, line.until, line.status) for line in project.windows("sales")] == covered
        assert project.reconcile("sales").is_same


def test_a_record_that_is_there_when_it_is_asked_for(make_folder: MakeFolder, feed: Feed) -> None:
    """A feed that leaves a record out of its lists, and still has it."""
    expected = fill(feed, 10)
    folder = harvest(make_folder, feed, guard={"max_delete": 0.5})
    folder.run()
    feed.put("r1", "11:00", "text 1")  # before the first window
    feed.put("r2", "11:00", None)
    feed.records = [record for record in feed.records if record.id != "r3"]
    found = folder.open().reconcile("sales", repair=True)
    assert (found.vanished, [result.rows.deleted for result in found.repairs]) == (3, [2])
    assert set(contents(folder)) == set(expected) - {"r2", "r3"}


def test_a_feed_that_does_not_answer_for_a_record(make_folder: MakeFolder, feed: Feed) -> None:
    """What nobody knows is not deleted."""
    fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()
    feed.records = [record for record in feed.records if record.id != "r3"]
    feed.always.append((lambda query: query["verb"] == "GetRecord", _broken))
    with pytest.raises(PartsMissing):
        folder.open().reconcile("sales", repair=True)
    assert len(contents(folder)) == 10


def test_a_feed_that_refuses_to_tell_of_a_record(make_folder: MakeFolder, feed: Feed) -> None:
    """Who may not look, or asks for another format, learns nothing about a record: it stays."""
    fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()
    feed.records = [record for record in feed.records if record.id != "r3"]
    for fault in (_status(403), _oai_error):
        feed.always = [(lambda query: query["verb"] == "GetRecord", fault)]
        with pytest.raises(PartsMissing):
            folder.open().reconcile("sales", repair=True)
        assert len(contents(folder)) == 10
    feed.always = [(lambda query: query["verb"] == "GetRecord", _status(410))]
    folder.open().reconcile("sales", repair=True)
    assert len(contents(folder)) == 9


def test_a_row_that_changed_since_it_was_compared(make_folder: MakeFolder, feed: Feed) -> None:
    """Whoever writes to a row before it is deleted has told something new of it."""
    fill(feed, 10)
    folder = harvest(make_folder, feed, guard={"max_delete": 0.5})
    folder.run()
    feed.records = [record for record in feed.records if record.id not in ("r3", "r4")]
    project = folder.open()
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.PLANNED and not told:
            told.append(event.detail)
            project.engine.spark.sql(
                "UPDATE lake.shop.sales SET last_modified = last_modified + INTERVAL 1 HOUR WHERE id = 'r3'"
            )

    found = project.reconcile("sales", repair=True, listen=listen)
    assert (found.vanished, [result.rows.deleted for result in found.repairs]) == (2, [1])
    assert "r3" in contents(folder)
    assert "r4" not in contents(folder)


@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize(
    "keys",
    [{"delete_when": "content = 'gone'"}, {"mode": "insert_only"}, {"deletes": "hard"}],
    ids=["delete_when", "insert_only", "hard"],
)
def test_whatever_tells_deletes(make_folder: MakeFolder, feed: Feed, keys: dict[str, Any], lane: str) -> None:
    """What has vanished is deleted, however the source tells of deletes."""
    expected = fill(feed, 10)
    folder = harvest(make_folder, feed, lane=lane, **keys)
    folder.run()
    columns = folder.open().table("shop.sales").columns
    feed.records = [record for record in feed.records if record.id != "r3"]
    found = folder.open().reconcile("sales", repair=True)
    assert [(result.status, result.rows.deleted) for result in found.repairs] == [("succeeded", 1)]
    assert set(contents(folder)) == set(expected) - {"r3"}
    assert folder.open().table("shop.sales").columns == columns


def test_a_repair_while_a_run_is_active(make_folder: MakeFolder, feed: Feed) -> None:
    """Nothing was repaired, and that is said."""
    fill(feed, 10)
    folder = harvest(make_folder, feed)
    folder.run()
    feed.records = [record for record in feed.records if record.id != "r3"]
    project = folder.open()
    with held(project.state, f"{project.project.state_key}/sales"), pytest.raises(PipelineBusy):
        project.reconcile("sales", repair=True)
    assert len(contents(folder)) == 10


def test_modes_without_rows_of_a_key(make_folder: MakeFolder) -> None:
    """They cannot be compared."""
    folder = make_folder()
    folder.write_csv("landing/a.csv", HEADER, [(1, 1, "a")])
    folder.run()
    with pytest.raises(ReconcileUnsuitable):
        folder.open().reconcile("sales")
