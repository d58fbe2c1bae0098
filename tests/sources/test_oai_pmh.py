"""Harvest an OAI-PMH feed that behaves, and one that does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import stamina

from esker.cli.windows import windows
from esker.errors import (
    BackfillUnsuitable,
    Held,
    NoWindows,
    PartsMissing,
    SourceRefused,
    SourceUnavailable,
)
from esker.pipeline.ids import read_ids
from esker.pipeline.status import project_status
from esker.project.sources import OaiPmhSource
from esker.sources import oai_pmh
from esker.sources.restart import Restart
from esker.sources.windows import Window
from tests.folder import Folder
from tests.reading.test_without_spark import ASK
from tests.reading.test_without_spark import run as without_spark
from tests.sources.oai_server import Fault, Feed, Query, Record, moment, send, serving
from tests.sources.rest_server import silence

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]
WINDOW = {"every": "15m", "start": "2026-01-01T12:00:00Z"}


@pytest.fixture
def feed() -> Iterator[Feed]:
    with serving(Feed(moment("13:00"))) as feed:
        yield feed


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Repeat requests at once, as often as declared."""
    with stamina.set_testing(True, attempts=6, cap=True):
        yield


def harvest(make_folder: MakeFolder, feed: Feed, window: dict[str, Any] | None = None, **keys: Any) -> Folder:
    source = {"type": "oai_pmh", "url": feed.url, "metadata_prefix": "marc", **keys.pop("source", {})}
    pipeline = {
        "source": source | {"window": WINDOW | (window or {})},
        "table": "shop.sales",
        "mode": "upsert",
        "key": ["id"],
        "order_by": "last_modified",
        **keys,
    }
    return make_folder(pipelines={"sales": pipeline})


def contents(folder: Folder) -> dict[str, str | None]:
    """Return the records that are not deleted, with the text of their content."""
    rows = folder.rows("shop.sales", "id", "deleted", "content")
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[2].partition(">")[2].partition("<")[0] for row in rows if not row[1]}


def fill(feed: Feed, count: int = 10) -> dict[str, str]:
    """Put records into the feed, from 12:00 on, one every five minutes."""
    for number in range(count):
        feed.put(f"r{number}", f"{12 + number // 12}:{number % 12 * 5:02}", f"text {number}", ("maps",))
    return {f"r{number}": f"text {number}" for number in range(count)}


# --- a feed that behaves -------------------------------------------------------------------------


def test_records_of_all_windows(make_folder: MakeFolder, feed: Feed) -> None:
    expected = fill(feed, 10)
    feed.put("gone", "12:59:59", None)
    feed.put("later", "13:00")  # the first moment after the last window
    folder = harvest(make_folder, feed)
    first = folder.run()
    assert (first.rows.read, first.rows.inserted, first.rows.ignored) == (11, 10, 1)
    assert contents(folder) == expected
    assert folder.rows("shop.sales", "sets")[0] == (["maps"],)
    assert '<m:leaf xmlns:m="urn:marc">' in folder.rows("shop.sales", "content")[0][0]
    assert first.position["to"] == {
        "covered": [[int(moment("12:00").timestamp()), int(moment("13:00").timestamp())]]
    }
    assert folder.run().rows.read == 0
    feed.now = moment("13:15")
    feed.put("r3", "13:01", "changed")
    feed.put("r4", "13:02", None)
    second = folder.run()
    assert (second.rows.inserted, second.rows.updated, second.rows.deleted) == (1, 1, 1)
    found = contents(folder)
    assert (found["r3"], found["later"], "r4" in found) == ("changed", "one", False)


def test_a_set_and_days(make_folder: MakeFolder, feed: Feed) -> None:
    """A feed that knows days only: windows are whole days, and a day that is not over is not read."""
    fill(feed, 4)
    feed.put("other", "12:00", sets=("films",))
    feed.granularity = "YYYY-MM-DD"
    feed.now = moment("13:00").replace(day=2)
    source = {"set": "maps"}
    with pytest.raises(SourceRefused, match="refuses"):
        harvest(make_folder, feed, source=source).run()
    window = {"every": "1d", "start": None}
    folder = harvest(make_folder, feed, window, source=source)
    folder.run()
    assert set(contents(folder)) == {"r0", "r1", "r2", "r3"}
    assert feed.windows() == ["2026-01-01"]
    assert feed.asked[-2]["until"] == "2026-01-01"


def test_no_window_is_covered_before_it_is_over(make_folder: MakeFolder, feed: Feed) -> None:
    feed.now = moment("12:10")
    folder = harvest(make_folder, feed, {"start": "2026-01-01T12:05:00Z"})
    feed.put("early", "12:06")
    assert folder.run().rows.read == 0
    assert feed.windows() == []
    feed.put("in time", "12:12")
    feed.now = moment("12:15")
    assert folder.run().rows.inserted == 2


def test_records_that_become_visible_late(make_folder: MakeFolder, feed: Feed) -> None:
    """They are found by the overlap; the same window again makes nothing twice."""
    fill(feed, 6)
    folder = harvest(make_folder, feed, {"overlap": "5m"})
    feed.now = moment("12:30")
    assert folder.run().rows.inserted == 6
    feed.put("late", "12:27")
    feed.now = moment("12:45")
    counts = folder.run().rows
    assert (counts.inserted, counts.unchanged, counts.updated) == (1, 1, 0)


# --- a feed that does not ------------------------------------------------------------------------


def status(code: int, **headers: str) -> Fault:
    return lambda handler: send(handler, code, b"no", **headers)


def body(text: bytes) -> Fault:
    return lambda handler: send(handler, 200, text)


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Break the connection in the middle of a page."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"<?xml version='1.0'?><OAI-PMH")
    handler.wfile.flush()
    handler.connection.close()


def is_page(query: Query) -> bool:
    return query["verb"] == "ListRecords"


def is_next_page(query: Query) -> bool:
    return "resumptionToken" in query


@pytest.mark.parametrize("concerns", [is_page, is_next_page], ids=["first_page", "next_page"])
@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(503, Retry_After="0"),
        status(429, Retry_After="Thu, 01 Jan 2026 00:00:00 GMT"),
        body(b""),
        body(b"<html>busy</html>"),
        body(b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRec"),
        reset,
        silence,
    ],
    ids=["500", "503", "429", "empty", "html", "cut", "reset", "timeout"],
)
def test_faults_that_pass(
    make_folder: MakeFolder, feed: Feed, fault: Fault, concerns: Callable[[Query], bool]
) -> None:
    """Each is met twice: the feed is asked again, and every record is there once."""
    expected = fill(feed)
    feed.faults = [(concerns, fault), (concerns, fault)]
    patience = {"timeout": "0.5s"} if fault is silence else {}
    folder = harvest(make_folder, feed, {"every": "1h"}, source=patience)
    assert folder.run().rows.inserted == 10
    assert feed.faults == []
    assert contents(folder) == expected


def test_a_token_that_expires(make_folder: MakeFolder, feed: Feed) -> None:
    """The window is read from its beginning; what was read before counts once."""
    expected = fill(feed)

    def expire(handler: BaseHTTPRequestHandler) -> None:
        feed.forget_tokens()
        send(handler, 200, feed.answer({"verb": "ListRecords", "resumptionToken": "old"}).encode())

    feed.faults = [(is_next_page, expire)]
    folder = harvest(make_folder, feed, {"every": "1h"})
    counts = folder.run().rows
    assert (counts.inserted, counts.duplicates) == (10, 0)
    assert contents(folder) == expected


def test_a_page_that_is_lost_with_its_token(make_folder: MakeFolder, feed: Feed) -> None:
    """The token counted, and the connection broke in the middle of its page: it cannot be asked for again."""
    expected = fill(feed)

    def spend_and_reset(handler: BaseHTTPRequestHandler) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(handler.path).query).items()}
        assert "<record>" in feed.answer(query)
        reset(handler)

    feed.faults = [(feed.knows, spend_and_reset), (feed.knows, spend_and_reset)]
    folder = harvest(make_folder, feed, {"every": "1h"})
    counts = folder.run().rows
    assert feed.faults == []
    assert len(feed.windows()) == 3  # from the beginning, each time
    assert (counts.inserted, counts.duplicates) == (10, 0)
    assert contents(folder) == expected


def test_records_on_two_pages(make_folder: MakeFolder, feed: Feed) -> None:
    """A feed that moves on while it is paged shows the last record of a page on the next one again."""
    expected = fill(feed)
    feed.repeated = 1
    folder = harvest(make_folder, feed, {"every": "1h"})
    counts = folder.run().rows
    assert (counts.read, counts.inserted, counts.duplicates) == (14, 10, 4)
    assert contents(folder) == expected


def cut_off(records: str) -> Callable[[BaseHTTPRequestHandler], None]:
    head = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    return lambda handler: send(handler, 200, f"{head}{records}</OAI-PMH>".encode())


@pytest.mark.parametrize(
    "answer",
    ['<error code="noRecordsMatch"/>', "<ListRecords/>"],
    ids=["nothing_matches", "no_records_and_no_token"],
)
def test_a_list_that_is_cut_off(make_folder: MakeFolder, feed: Feed, answer: str) -> None:
    """The page before promised more: the window is read again, never taken for complete."""
    expected = fill(feed)
    feed.faults = [(is_next_page, cut_off(answer))]
    folder = harvest(make_folder, feed, {"every": "1h"})
    assert folder.run().rows.inserted == 10
    assert contents(folder) == expected


def test_a_list_that_is_shorter_than_it_says(feed: Feed) -> None:
    """The last page lacks the token that ends a list: its size tells whether that was all."""
    record = "<record><header><identifier>{}</identifier><datestamp>2026-01-01</datestamp></header></record>"
    token = '<resumptionToken completeListSize="3">more</resumptionToken>'
    first = cut_off(f"<ListRecords>{record.format('a')}{token}</ListRecords>")
    opened = oai_pmh.Feed(
        OaiPmhSource.model_validate(
            {"type": "oai_pmh", "url": feed.url, "metadata_prefix": "marc", "window": {"every": "1h"}}
        )
    )
    window = Window.between(moment("12:00"), moment("13:00"))
    for ids, is_whole in (("b", False), ("bc", True)):
        rest = "".join(map(record.format, ids))
        feed.always = [
            (is_next_page, cut_off(f"<ListRecords>{rest}</ListRecords>")),
            (lambda query: query["verb"] == "ListRecords", first),
        ]
        if is_whole:
            assert sum(len(page) for page in opened.pages(window)) == 3
        else:
            with pytest.raises(Restart, match="ends after 2 records"):
                list(opened.pages(window))
    opened.close()


def test_an_address_with_parameters(feed: Feed) -> None:
    """Some feeds are a page of something else: what stands in the address stays."""
    declared = {"type": "oai_pmh", "url": f"{feed.url}?page=oai", "metadata_prefix": "marc"}
    opened = oai_pmh.Feed(OaiPmhSource.model_validate(declared | {"window": {"every": "1h"}}))
    opened.now()
    opened.close()
    assert feed.asked[-1] == {"page": "oai", "verb": "Identify"}


def begins(clock: str) -> Callable[[Query], bool]:
    return lambda query: query.get("from", "").endswith(f"T{clock}:00Z")


def test_a_window_that_fails_between_good_ones(make_folder: MakeFolder, feed: Feed) -> None:
    """The others are loaded, the run says what is missing, and the next one fetches it."""
    expected = fill(feed)
    folder = harvest(make_folder, feed)
    feed.always = [(begins("12:15"), status(500))]
    with pytest.raises(PartsMissing, match="1 part of the source could not be read") as caught:
        folder.run()
    assert "2026-01-01 12:15:00 to 12:30:00" in caught.value.reason
    assert caught.value.exit_status == 4
    assert set(contents(folder)) == expected.keys() - {"r3", "r4", "r5"}
    [plan] = folder.open().plan()
    assert [failure.message for failure in plan.failures] == [
        "window 2026-01-01 12:15:00 to 12:30:00 could not be read"
    ]
    lines = [(line.status, f"{line.since:%H:%M}", line.attempts) for line in folder.open().windows("sales")]
    assert lines[:3] == [("covered", "12:00", 0), ("failed", "12:15", 1), ("covered", "12:30", 0)]
    # Newer than what the gap holds, and loaded before it.
    feed.now = moment("13:15")
    feed.records.append(next(record for record in feed.records if record.id == "r4"))
    feed.put("r3", "13:05", "newer")
    with pytest.raises(PartsMissing):
        folder.run()
    feed.always = []
    result = folder.run()
    assert result.rows.inserted == 2
    assert result.changeset == 3
    assert contents(folder) == expected | {"r3": "newer"}
    assert next(line.status for line in folder.open().windows("sales")) == "covered"
    assert folder.run().rows.read == 0


def test_an_older_version_from_a_gap_changes_nothing(make_folder: MakeFolder, feed: Feed) -> None:
    """A feed that shows old versions, and a window that comes after newer ones."""
    feed.put("r", "12:50", "newer")
    feed.records.append(type(feed.records[0])("r", moment("12:05"), "older"))
    feed.always = [(begins("12:00"), status(503))]
    folder = harvest(make_folder, feed)
    with pytest.raises(PartsMissing):
        folder.run()
    feed.always = []
    assert folder.run().rows.stale == 1
    assert contents(folder) == {"r": "newer"}


def test_a_window_that_always_fails(make_folder: MakeFolder, feed: Feed) -> None:
    """After some runs it is left alone. Runs and the status tell of the gap until a backfill closes it."""
    expected = fill(feed)
    folder = harvest(make_folder, feed, {"max_attempts": 2})
    feed.always = [(begins("12:15"), body(b""))]
    for now in ("13:15", "13:30"):
        feed.now = moment(now)  # others can be read: it is this window's fault
        with pytest.raises(PartsMissing):
            folder.run()
    asked = len(feed.asked)
    left = folder.run()
    assert left.rows.read == 0
    told = left.as_json()["missing_windows"]
    assert (told["windows"], told["from"]) == (1, "2026-01-01T12:15:00+00:00")
    assert told["to"] == "2026-01-01T12:30:00+00:00"
    assert any("1 window is missing since" in note for note in left.notes)
    assert folder.run().missing_windows == left.missing_windows
    [line] = project_status(folder.open().project, folder.open().state, datetime.now(UTC))
    assert line.as_json()["missing_windows"] == told
    assert not any(begins("12:15")(query) for query in feed.asked[asked:])
    assert [line.status for line in folder.open().windows("sales")][1] == "given up"
    feed.always = []
    opened = folder.open()
    result = opened.backfill("sales", since="2026-01-01T12:15", until="2026-01-01T12:30")
    assert (result.status, result.rows.inserted) == ("succeeded", 3), result.error
    assert result.missing_windows is None
    assert contents(folder) == expected
    assert next(line.status for line in folder.open().windows("sales")) == "covered"
    again = folder.open().backfill("sales", since="2026-01-01T12:00", until="2026-01-01T13:00")
    assert (again.status, again.rows.read, again.rows.inserted, again.rows.updated) == ("succeeded", 10, 0, 0)
    assert isinstance(folder.open().backfill("sales", full=True).error, BackfillUnsuitable)


def test_a_feed_that_is_down(make_folder: MakeFolder, feed: Feed) -> None:
    """Nothing is taken for done, and a long outage is caught up in bounded steps."""
    folder = harvest(make_folder, feed, {"start": "2026-01-01T00:00:00Z", "max_windows": 10})
    feed.always = [(lambda query: True, status(503))]
    with pytest.raises(SourceUnavailable):
        folder.run()
    expected = fill(feed)
    feed.always = []
    result = folder.run()
    assert contents(folder) == expected
    assert len(feed.windows()) == 52
    assert result.pieces >= 10
    assert result.batches == 2  # all records lie in the last two steps


def test_an_outage_of_a_day(make_folder: MakeFolder, feed: Feed) -> None:
    """Runs go on failing for 24 hours; one that works then catches up, in bounded steps."""
    expected = fill(feed)
    folder = harvest(make_folder, feed, {"max_windows": 10})
    assert folder.run().rows.inserted == 10
    began = feed.now
    for hour in range(1, 25):
        feed.now = began + timedelta(hours=hour)
        changed = feed.now - timedelta(minutes=20)
        feed.records.append(Record(f"in hour {hour}", changed, f"text of {hour}"))
        # The whole server, or only its lists.
        feed.always = [(is_page if hour % 2 else (lambda query: True), status(503))]
        with pytest.raises((SourceUnavailable, PartsMissing)):
            folder.run()
    assert contents(folder) == expected
    feed.always, feed.asked = [], []
    result = folder.run()
    assert len(feed.windows()) == len(set(feed.windows())) == 96
    assert (result.rows.read, result.rows.inserted, result.batches) == (24, 24, 10)
    assert contents(folder) == expected | {f"in hour {hour}": f"text of {hour}" for hour in range(1, 25)}
    assert {line.status for line in folder.open().windows("sales")} <= {"covered", "missing"}
    assert next(line.until for line in folder.open().windows("sales")) == feed.now
    assert folder.run().rows.read == 0


def test_windows_as_they_are_printed(
    make_folder: MakeFolder, feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Covered, failed, held until somebody decides, and missing: each stretch of time once, in its order."""
    fill(feed)
    feed.now = moment("12:20")
    folder = harvest(make_folder, feed, guard={"max_rows": 3})
    folder.run()
    feed.now = moment("13:10")
    feed.always = [(begins("12:15"), status(500))]
    with pytest.raises(Held):
        folder.run()
    found = folder.open().windows("sales")[:3]
    assert [(line.status, f"{line.since:%H:%M}", f"{line.until:%H:%M}") for line in found] == [
        ("covered", "12:00", "12:15"),
        ("failed", "12:15", "12:30"),
        ("held", "12:30", "13:00"),
    ]
    assert folder.open().windows("sales")[3].status == "missing"
    windows("sales", project=folder.path)
    printed = capsys.readouterr().out.splitlines()
    words = ("covered", "failed", "held", "missing")
    lines = [next(line for line in printed if f" {word} " in line) for word in words]
    assert [printed.index(line) for line in lines] == sorted(printed.index(line) for line in lines)
    assert "2026-01-01T12:30:00" in lines[2]
    assert "It answers 500" in " ".join(printed)
    windows("sales", project=folder.path, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["windows"][2] == {
        "from": "2026-01-01T12:30:00+00:00",
        "to": "2026-01-01T13:00:00+00:00",
        "status": "held",
        "attempts": 0,
        "error": None,
    }
    # Where neither PySpark nor Java is, the answer is the same.
    assert without_spark(ASK, "windows", "sales", "--json", folder=folder.path) == document
    assert folder.open().approve("sales").rows.inserted == 4


def test_an_outage_is_not_the_fault_of_windows(make_folder: MakeFolder, feed: Feed) -> None:
    """However many runs meet it: no window is given up, and few are asked for."""
    expected = fill(feed)
    folder = harvest(make_folder, feed, {"max_attempts": 1, "start": "2026-01-01T00:00:00Z"})
    feed.always = [(is_page, status(500))]
    for _ in range(2):
        with pytest.raises(PartsMissing, match="3 parts"):
            folder.run()
    assert len(set(feed.windows())) == 4  # and the newest, to see whether it is these windows' fault
    feed.always = []
    folder.run()
    assert contents(folder) == expected


def test_many_records_in_one_window(make_folder: MakeFolder, feed: Feed) -> None:
    """It is halved until the parts are small; records of one second cannot be parted."""
    fill(feed)
    for number in range(7):
        feed.put(f"same {number}", "12:07")
    folder = harvest(make_folder, feed, {"every": "1h", "split_at": 4})
    assert folder.run().rows.inserted == 17
    assert len(feed.windows()) > 4
    [line] = [line for line in folder.open().windows("sales") if line.status == "covered"]
    assert (line.since, line.until) == (moment("12:00"), moment("13:00"))


def test_clocks(make_folder: MakeFolder, feed: Feed) -> None:
    """A source whose clock jumps ahead does not make Esker read the future; one that jumps back nothing."""
    feed.put("r", "12:01")
    feed.now = moment("12:00").replace(year=2999)
    folder = harvest(make_folder, feed, {"every": "1d"})
    folder.run()
    assert all(line.until.year < 2999 for line in folder.open().windows("sales"))
    feed.now = moment("12:00").replace(year=2020)
    assert folder.run().rows.read == 0


def test_nothing_to_ask_for(make_folder: MakeFolder, feed: Feed) -> None:
    folder = harvest(make_folder, feed, source={"metadata_prefix": "oai_dc"})
    with pytest.raises(SourceRefused) as caught:
        folder.run()
    assert "cannotDisseminateFormat: marc only" in caught.value.reason
    files = make_folder("files")
    with pytest.raises(NoWindows):
        files.open().windows("sales")


def test_peek(make_folder: MakeFolder, feed: Feed) -> None:
    fill(feed)
    peeked = harvest(make_folder, feed).open().peek("sales", 2)
    assert peeked.columns == ("id", "last_modified", "deleted", "sets", "content")
    assert [row["id"] for row in peeked.rows] == ["r9"]


def test_records_that_are_not_as_they_should_be(make_folder: MakeFolder, feed: Feed) -> None:
    """Each is kept in the quarantine, whole, and the others of its window are loaded."""
    expected = fill(feed)
    feed.records[4].stamp = "yesterday"
    head = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><about/></record>'
    feed.always = [
        (begins("12:45"), lambda handler: send(handler, 200, head.encode() + b"</ListRecords></OAI-PMH>"))
    ]
    folder = harvest(make_folder, feed, bad_rows="quarantine")
    counts = folder.run().rows
    lost = {"r4", *(record.id for record in feed.records if record.changed >= moment("12:45"))}
    assert (counts.inserted, counts.quarantined) == (len(expected) - len(lost), 2)
    assert set(contents(folder)) == expected.keys() - lost
    kept = sorted(folder.open().show_quarantined("sales"), key=lambda row: row["reason"])
    assert 'the datestamp of record "r4" cannot be read: "yesterday" is no time.' in kept[0]["reason"]
    assert '"last_modified": "yesterday"' in kept[0]["payload"]
    assert "the record has no header: <record" in kept[1]["reason"]


def test_rows_that_are_made_in_another_way(make_folder: MakeFolder, feed: Feed) -> None:
    """What is stored wins a tie, unless somebody says that it must not."""
    fill(feed, 3)
    sql = "SELECT id, last_modified, deleted, {} AS content FROM input"
    folder = harvest(make_folder, feed, transform=sql.format("content"))
    folder.run()
    feed.records[0].changed = moment("11:00")
    folder.change(transform=sql.format("'made anew'"))
    since = "2026-01-01T11:00"
    assert folder.open().backfill("sales", since=since).rows.stale == 3
    result = folder.open().backfill("sales", since=since, replace_equal=True)
    assert (result.rows.updated, result.rows.stale) == (2, 1), result.error
    assert [row[0] for row in folder.rows("shop.sales", "content")].count("made anew") == 2
    ids = folder.open().backfill("sales", ids=["r1"], replace_equal=True)
    assert (ids.rows.unchanged, ids.rows.stale) == (1, 0)
    folder.change(mode="insert_only")
    with pytest.raises(BackfillUnsuitable, match="cannot be backfilled so"):
        folder.open().backfill("sales", since=since, replace_equal=True)


# --- by id ---------------------------------------------------------------------------------------


def test_records_by_their_ids(make_folder: MakeFolder, feed: Feed) -> None:
    """Loaded where they are newer; those that the feed lacks are told, and the position stays."""
    feed.put("r1", "12:01", "one")
    folder = harvest(make_folder, feed)
    folder.run()
    feed.put("r1", "12:02", "two")
    feed.put("late", "12:03", "late")
    feed.put("other", "12:04", "other")
    opened = folder.open()
    result = opened.backfill("sales", ids=["r1", "late", "late", "none"])
    assert isinstance(result.error, PartsMissing)
    assert 'It has no record "none"' in result.error.reason
    assert (result.rows.inserted, result.rows.updated) == (1, 1)
    assert contents(folder) == {"r1": "two", "late": "late"}
    assert opened.backfill("sales", ids=["r1", "late"]).rows.stale == 2
    assert folder.run().rows.read == 0


def test_ids_of_records_that_cannot_be_read(make_folder: MakeFolder, feed: Feed) -> None:
    """One of a list stops no other; when nothing is answered any more, that is told at once."""
    fill(feed, 6)
    folder = harvest(make_folder, feed, bad_rows="quarantine", source={"retries": 0})
    feed.records[1].stamp = "2026-13-13"
    feed.always = [(lambda query: query.get("identifier") in ("r2", "r4"), body(b"<OAI-PMH"))]
    result = folder.open().backfill("sales", ids=[f"r{number}" for number in range(6)])
    assert isinstance(result.error, PartsMissing)
    assert "2 parts" in result.error.message
    assert (result.rows.inserted, result.rows.quarantined) == (3, 1)
    feed.always = [(lambda query: "identifier" in query, status(500))]
    asked = len(feed.asked)
    result = folder.open().backfill("sales", ids=[f"r{number}" for number in range(6)])
    assert isinstance(result.error, SourceUnavailable)
    assert len(feed.asked) - asked == 3


def test_files_of_ids(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("a\n\n b \na\n", encoding="utf-8")
    assert read_ids("sales", file) == ("a", "b")
    for text in (b"\n", b"\xff\xfe"):
        file.write_bytes(text)
        with pytest.raises(BackfillUnsuitable):
            read_ids("sales", file)
    with pytest.raises(BackfillUnsuitable):
        read_ids("sales", tmp_path / "none.txt")


def test_ids_where_a_source_has_none(make_folder: MakeFolder) -> None:
    folder = make_folder()
    folder.change(mode="upsert", key=["id"])
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    result = folder.open().backfill("sales", ids=["1"])
    assert isinstance(result.error, BackfillUnsuitable)
    assert "cannot be asked for records by their ids" in result.error.reason
