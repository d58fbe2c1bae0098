"""A row that cannot be delivered is a dead letter: sent again as it is by then, while the others go on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import live_rows
from esker.engine.iceberg.table import TableId
from esker.errors import Unexpected
from esker.events import Delivered, DeliveryStep, Event
from esker.ledger import dead_letters, upkeep
from esker.ledger.dead_letter_events import ARROW, DEAD, RESOLVED
from esker.ledger.dead_letters import DeadLetters
from esker.ledger.retention import trim
from tests.deliver.told import TRANSFORM, Tell, Told
from tests.recover.damage import checks, pointer, repair, truncate

pytestmark = pytest.mark.spark

STRICT = TRANSFORM.replace('row["title"].strip()', 'row["title"][0].upper() + row["title"][1:]')
"""Fails for empty titles."""
BY_BATCH = """
import esker
import pyarrow as pa
import pyarrow.compute as pc

@esker.transform(per="batch")
def to_work(rows):
    if pc.any(pc.equal(rows.column("title"), "")).as_py():
        raise ValueError("a title is empty")
    kept = rows.filter(pc.not_equal(rows.column("title"), "hidden"))
    return pa.table({"id": kept.column("id"), "title": pc.utf8_upper(kept.column("title"))})
"""
BY_COUNTRY = """
import esker

@esker.transform
def to_work(row):
    return {"title": row["title"][0].upper() + row["title"][1:]}
"""
DEAD_TABLE = "lake.shop.search__dead"
WORK = {"transform": "transforms/works.py:to_work"}


def write(told: Told, text: str) -> None:
    told.works.folder.write("transforms/works.py", text)


@pytest.mark.parametrize("text", [STRICT, BY_BATCH], ids=["row", "batch"])
def test_one_malformed_record_of_many_is_a_dead_letter(tell: Tell, text: str) -> None:
    """9,999 of 10,000 arrive, and one is kept with what is known of it."""
    told = tell(**WORK, batch={"spark": 1_000})
    write(told, text)
    rows = [{"id": number, "title": f"t{number}"} for number in range(10_000)]
    rows[4_321]["title"] = ""
    told.load(*rows)
    result = told.deliver()
    assert (result.rows.rows, result.rows.sent, result.rows.dead, result.dead) == (10_000, 9_999, 1, 1)
    assert len(told.shelf.documents()) == 9_999
    [letter] = told.letters()
    assert (letter["id"], letter["status"], letter["stage"], letter["attempts"]) == (
        "4321",
        "dead",
        "transform",
        1,
    )
    assert "Error" in letter["error"]
    assert json.loads(letter["payload"]) == {"id": 4321, "title": ""}
    assert json.loads(letter["key"]) == {"id": 4321}
    assert (letter["changeset"], letter["version"]) == (1, 1)


@pytest.mark.parametrize("spark", [10_000, 0])
def test_each_change_of_a_row_has_the_body_of_its_own(tell: Tell, spark: int) -> None:
    """Also when several come together: a row that is not wanted any more is deleted."""
    told = tell(**WORK, versions=False, batch={"spark": spark})
    write(told, BY_BATCH)
    told.load({"id": 1, "title": "a"}, {"id": 2, "title": "hidden"})
    told.load({"id": 1, "title": "hidden"}, {"id": 2, "title": "b"})
    told.load({"id": 2, "title": ""})
    result = told.deliver()
    assert (result.rows.sent, result.rows.unwanted, result.rows.dead) == (2, 2, 1)
    assert told.titles() == {"2": "B"}
    assert [sent for sent in told.shelf.sent() if sent[0] == "1"] == [("1", 1, "insert"), ("1", 2, "delete")]


def test_what_is_known_does_not_alarm_again(tell: Tell) -> None:
    """A row that fails as it did before is counted apart; one that arrives is done with."""
    told = tell(**WORK, pipeline={"columns": {"id": "int", "title": "string", "year": "int"}})
    write(told, STRICT)
    told.load({"id": 1, "title": "", "year": 1}, {"id": 2, "title": "refused", "year": 1})
    result = told.deliver()
    assert (result.rows.dead, result.rows.known, result.dead) == (2, 0, 2)
    told.load({"id": 1, "title": "", "year": 2}, {"id": 2, "title": "good", "year": 2})
    result = told.deliver()
    assert (result.rows.dead, result.rows.known, result.rows.resolved, result.dead) == (0, 1, 1, 1)
    assert told.titles() == {"2": "Good"}
    newest = told.letters()[-2:]
    assert [(each["id"], each["status"], each["attempts"]) for each in newest] == [
        ("1", "dead", 2),
        ("2", "resolved", None),
    ]
    assert newest[0]["first_seen_at"] < newest[0]["seen_at"]


def test_dead_letters_are_sent_as_their_rows_are_by_now(tell: Tell) -> None:
    """What was delivered meanwhile is not replaced by what was stored; a deleted row stays deleted."""
    told = tell(**WORK, pipeline={"delete_when": "title = 'gone'"})
    write(told, STRICT.replace('row["title"] == "hidden"', 'row["id"] / (row["id"] - 1) == 7'))
    told.load({"id": 1, "title": "first"}, {"id": 5, "title": "five"})
    assert told.deliver().rows.dead == 1
    told.load({"id": 1, "title": "second"})
    told.deliver()
    assert told.titles() == {"5": "Five"}
    assert told.deliver(retry_dead=True).rows.known == 1
    write(told, STRICT)
    told.load({"id": 1, "title": "third"})
    result = told.works.project.deliver("search", retry_dead=True)
    # Newest up to the offset first, then what is new.
    assert [op for id_, _, op in told.shelf.sent() if id_ == "1"] == ["update", "update"]
    assert (result.rows.resolved, result.dead) == (1, 0)
    assert told.titles() == {"1": "Third", "5": "Five"}
    assert told.deliver(retry_dead=True).rows.rows == 0


def test_a_broken_table_of_dead_letters_is_repaired(tell: Tell) -> None:
    """`esker fsck` looks at it as at Esker's other tables, and each letter is there once afterwards."""
    told = tell(**WORK)
    write(told, STRICT)
    for number in (1, 2, 3):
        told.load({"id": number, "title": ""})
        assert told.deliver().rows.dead == 1
    truncate(pointer(told.works.folder, "search__dead"))
    project = told.works.folder.open()
    assert checks(project) == ["metadata"]
    assert {str(each.table) for each in repair(project)} == {"shop.search__dead"}
    assert checks(project) == []
    told.works.project = project
    assert sorted(letter["id"] for letter in told.letters()) == ["1", "2", "3"]
    assert told.deliver(retry_dead=True).rows.known == 3


def test_a_row_that_is_gone_by_now_is_deleted(tell: Tell) -> None:
    """Its letter is done with."""
    told = tell(**WORK, pipeline={"deletes": "hard", "delete_when": "title = 'gone'"})
    write(told, STRICT)
    told.load({"id": 1, "title": ""}, {"id": 2, "title": ""})
    told.deliver()
    told.load({"id": 1, "title": "gone"})
    result = told.deliver()
    assert (result.rows.deleted, result.rows.resolved, result.dead) == (1, 1, 1)
    # The log forgets both; the row that is still there is found in the table.
    log = TableId("lake", "shop.works__changes")
    trim(told.works.project.engine, log, timedelta(days=1), datetime.now(UTC) + timedelta(days=365))
    write(told, TRANSFORM)
    result = told.deliver(retry_dead=True)
    assert (result.rows.sent, result.dead) == (1, 0)
    assert told.titles() == {"2": ""}


@pytest.mark.parametrize("spark", [10_000, 0])
def test_later_changes_wait_behind_a_dead_letter_where_versions_are_not_kept(tell: Tell, spark: int) -> None:
    """An older change never arrives behind a newer one: only the newest is sent in the end."""
    told = tell(**WORK, versions=False, batch={"spark": spark})
    told.load({"id": 1, "title": "refused"}, {"id": 2, "title": "b"})
    told.load({"id": 1, "title": "second"})
    result = told.deliver()
    assert (result.rows.sent, result.rows.dead, result.rows.known) == (1, 1, 1)
    told.load({"id": 1, "title": "third"}, {"id": 2, "title": "c"})
    result = told.deliver()
    assert (result.rows.sent, result.rows.dead, result.rows.known) == (1, 0, 1)
    assert told.titles() == {"2": "c"}
    letters = [each for each in told.letters() if each["id"] == "1"]
    assert [(each["stage"], each["attempts"]) for each in letters] == [("target", 1)] * 3
    assert [each["changeset"] for each in letters] == [1, 2, 3]
    result = told.deliver(retry_dead=True)
    assert (result.rows.sent, result.rows.resolved, result.dead) == (1, 1, 0)
    assert told.titles() == {"1": "third", "2": "c"}
    told.load({"id": 1, "title": "fourth"})
    told.deliver()
    assert told.titles() == {"1": "fourth", "2": "c"}


@pytest.mark.parametrize("spark", [10_000, 0])
def test_a_row_that_others_wait_behind_is_known_all_the_same(tell: Tell, spark: int) -> None:
    """Its letter says why it is dead, so that the same refusal does not alarm again."""
    told = tell(**WORK, versions=False, batch={"spark": spark})
    told.load({"id": 1, "title": "refused"})
    assert told.deliver().rows.dead == 1
    for title in ("Refused", "REFUSED"):
        told.load({"id": 1, "title": title})
    told.deliver()
    result = told.deliver(retry_dead=True)
    assert (result.rows.dead, result.rows.known, result.dead) == (0, 1, 1)
    newest = told.letters()[-1]
    assert (newest["stage"], newest["error"], newest["changeset"]) == ("target", "its title is refused", 3)
    assert json.loads(newest["payload"])["title"] == "REFUSED"


def test_a_key_of_several_columns(tell: Tell) -> None:
    """Its texts as a JSON list are the id: of documents, of dead letters, and of what is sent again."""
    key = {"key": ["country", "number"], "delete_when": "title = 'gone'"}
    told = tell(**WORK, pipeline=key, batch={"spark": 0})
    write(told, BY_COUNTRY)
    rows = [("NL", 1, "a"), ("NL", 11, ""), ('N"L', 1, "refused"), ("B,E", 1, "d"), ("BE", 7, "")]
    told.load(*({"country": c, "number": n, "title": t} for c, n, t in rows))
    result = told.deliver()
    assert (result.rows.sent, result.rows.dead) == (2, 3)
    assert told.titles() == {'["NL","1"]': "A", '["B,E","1"]': "D"}
    letters = {each["id"]: (each["stage"], json.loads(each["key"])) for each in told.letters()}
    assert letters == {
        '["NL","11"]': ("transform", {"country": "NL", "number": 11}),
        '["N\\"L","1"]': ("target", {"country": 'N"L', "number": 1}),
        '["BE","7"]': ("transform", {"country": "BE", "number": 7}),
    }
    told.load(*({"country": c, "number": n, "title": t} for c, n, t in (('N"L', 1, "b"), ("BE", 7, "gone"))))
    result = told.deliver()
    assert (result.rows.sent, result.rows.deleted, result.rows.resolved, result.dead) == (1, 1, 2, 1)
    write(told, BY_COUNTRY.replace('row["title"][0].upper() + row["title"][1:]', '"!" + row["title"]'))
    result = told.deliver(retry_dead=True)
    assert (result.rows.sent, result.rows.resolved, result.dead) == (1, 1, 0)
    assert told.titles() == {'["NL","1"]': "A", '["B,E","1"]': "D", '["N\\"L","1"]': "B", '["NL","11"]': "!"}
    # By hand, with spaces or a number as one, and one that is not there.
    result = told.reindex(ids=['["NL", "1"]', '["B,E", 1]', '["NL","2"]'])
    assert (result.rows.sent, result.rows.deleted) == (2, 1)
    assert (told.titles()['["NL","1"]'], told.titles()['["B,E","1"]']) == ("!a", "!d")


@pytest.mark.parametrize(
    ("text", "versions", "spark"), [(STRICT, True, 10_000), (BY_BATCH, False, 10_000), (BY_BATCH, False, 0)]
)
def test_an_id_that_python_cannot_hold_is_a_dead_letter(
    tell: Tell, text: str, versions: bool, spark: int
) -> None:
    """There are no days behind the year 9999; rows of other ids arrive, and nothing is asked of it again."""
    columns = {"day": "date", "number": "int", "title": "string"}
    told = tell(
        **WORK,
        pipeline={"key": ["day", "number"], "columns": columns, "lane": "large"},
        versions=versions,
        batch={"spark": spark},
    )
    made = text.replace('"id": row["id"]', '"id": row["number"]')
    write(
        told,
        made.replace(
            '{"id": kept.column("id")', '{"day": kept.column("day"), "number": kept.column("number")'
        ),
    )
    told.load(*({"day": f"2026-01-0{number}", "number": number, "title": "a"} for number in (1, 2)))
    days = pa.array([4_000_000, 20_000], pa.date32())
    rows = pa.table({"day": days, "number": pa.array([3, 4], pa.int32()), "title": ["b", "a"]})
    told.works.project.load("works", rows)
    result = told.deliver()
    assert (result.rows.sent, result.rows.dead, result.dead) == (3, 1, 1)
    assert set(told.titles()) == {'["2026-01-01","1"]', '["2026-01-02","2"]', '["2024-10-04","4"]'}
    [letter] = told.letters()
    assert (letter["id"], letter["stage"]) == ('["12921-08-18","3"]', "transform")
    assert "Python" in letter["error"]
    assert json.loads(letter["payload"])["day"] == "12921-08-18"
    again = told.deliver(retry_dead=True)
    assert (again.rows.dead, again.rows.known, again.dead) == (0, 1, 1)


def test_what_comes_again_waits_behind_nothing_new(tell: Tell) -> None:
    """After a stop before the offset moved, letters are as they were: none waits behind itself."""
    told = tell(**WORK, versions=False)
    told.load({"id": 1, "title": "refused"})
    told.load({"id": 1, "title": "second"})

    def stop(event: Event) -> None:
        if isinstance(event, Delivered) and event.step is DeliveryStep.SENT:
            raise RuntimeError("stopped")

    for _ in range(2):
        with pytest.raises(Unexpected):
            told.deliver(stop)
    assert told.deliver().dead == 1
    assert [each["changeset"] for each in told.letters()] == [1, 2]
    assert {each["error"] for each in told.letters()} == {"its title is refused"}
    result = told.deliver(retry_dead=True)
    assert (result.rows.sent, result.dead, told.titles()) == (1, 0, {"1": "second"})


def test_every_row_may_fail(tell: Tell) -> None:
    """Counts are not capped, and no letter is lost, when Spark writes them."""
    told = tell(**WORK, batch={"spark": 100})
    write(told, TRANSFORM.replace("return {", "raise ValueError('no') or {"))
    told.load(*({"id": number, "title": "x"} for number in range(12_000)))
    result = told.deliver()
    assert (result.rows.dead, result.dead) == (12_000, 12_000)
    assert told.works.sql("SELECT count(DISTINCT id) FROM lake.shop.search__dead")[0][0] == 12_000
    write(told, TRANSFORM)
    result = told.deliver(retry_dead=True)
    assert (result.rows.sent, result.rows.resolved, result.dead) == (12_000, 12_000, 0)


def _letter(event: int, id_: str, status: str = DEAD, attempts: int = 1) -> dict[str, Any]:
    now = datetime.now(UTC)
    told = {"event": event, "id": id_, "status": status, "seen_at": now, "payload": f"{id_} {event}"}
    if status == DEAD:
        told |= {"key": "{}", "stage": "target", "error": "no", "changeset": event, "first_seen_at": now}
        told["attempts"] = attempts
    return told


def _add(letters: DeadLetters, *events: dict[str, Any]) -> None:
    letters.add(pa.Table.from_pylist(list(events), ARROW))


def _files(told: Told) -> int:
    return len(told.works.sql(f"SELECT * FROM {DEAD_TABLE}.files"))


def test_who_looks_again_reads_no_letters(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of a version of the table is not read again, also by the next delivery."""
    told = tell()
    told.load({"id": 1, "title": "refused"})
    assert told.deliver().dead == 1
    read: list[int] = []

    def counted(files: Any, schema: Any, chosen: Any, *columns: Any) -> Any:
        read.append(len(chosen))
        return live_rows(files, schema, chosen, *columns)

    monkeypatch.setattr(dead_letters, "live_rows", counted)
    for _ in range(3):
        assert told.deliver().dead == 1
    assert read == []
    told.load({"id": 2, "title": "refused"})
    assert told.deliver().dead == 2
    assert read == [2]


def test_many_files_of_letters_are_put_together(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last event of each id stays with all that is known of it; numbers never go back."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    monkeypatch.setattr(dead_letters, "_MOST_FILES", 3)
    monkeypatch.setattr(upkeep, "_KEPT_SNAPSHOTS", 2)
    monkeypatch.setattr(upkeep, "KEPT_FOR", timedelta())
    letters = DeadLetters(told.works.project.engine, TableId("lake", "shop.search__dead"))
    _add(letters, _letter(1, "a"), _letter(1, "b"))
    _add(letters, _letter(2, "a", attempts=2))
    _add(letters, _letter(3, "a", attempts=3))
    before = letters.waiting()
    assert _files(told) == 3
    _add(letters, _letter(4, "b", RESOLVED))
    assert _files(told) == 1
    assert told.works.project.table("shop.search__dead.snapshots").count() == 2
    kept = [(row["event"], row["id"], row["status"], row["payload"]) for row in told.letters()]
    assert kept == [(3, "a", DEAD, "a 3"), (4, "b", RESOLVED, "b 4")]
    waiting = letters.waiting()
    assert (waiting.event, waiting.letters) == (4, {"a": before.letters["a"]})


def test_letters_that_come_while_others_are_put_together_stay(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who adds a letter between the look and the swap wins; the next one puts them together."""
    told = tell()
    told.load({"id": 1, "title": "a"})
    monkeypatch.setattr(dead_letters, "_MOST_FILES", 2)
    engine, table = told.works.project.engine, TableId("lake", "shop.search__dead")
    letters, other = DeadLetters(engine, table), DeadLetters(engine, table)
    replace, late = Attempt.replace, [_letter(3, "late")]

    def replaced(self: Attempt, *given: Any) -> Any:
        if late:
            _add(other, late.pop())
        return replace(self, *given)

    monkeypatch.setattr(Attempt, "replace", replaced)
    _add(letters, _letter(1, "a"))
    _add(letters, _letter(2, "a", attempts=2))
    _add(letters, _letter(2, "b"))
    assert sorted(letters.waiting().letters) == ["a", "b", "late"]
    assert letters.waiting().letters["a"].attempts == 2
    _add(letters, _letter(4, "c"))
    assert sorted(letters.waiting().letters) == ["a", "b", "c", "late"]
    assert _files(told) <= 2
