"""What happens to a row: every line of the state table, in both lanes, with soft and with hard deletes.

All lines of one setting are loaded together, since a load costs far more than a row: what is stored, then
the deletes of what was stored, then what comes in. Each line has a key of its own, and a test of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import pytest

from esker.load.counts import RowCounts
from tests.load.works import CHANGES, LANES, Make, Row, Works

pytestmark = pytest.mark.spark

NEWEST = 9
"""The highest order value of the incoming batch."""
_UNTIMED = object()


def live(at: Any, title: str | None = "a") -> Row:
    return {"at": at, "title": title, "deleted": False}


def dead(at: Any, title: str = "a") -> Row:
    return {"at": at, "title": title, "deleted": True}


def delete(at: Any) -> Row:
    """A delete as sources send it: what it says of the content counts for nothing."""
    return {"at": at, "title": None, "deleted": True}


@dataclass(frozen=True)
class Line:
    """One line of the state table."""

    name: str
    stored: Row | None
    incoming: tuple[Row, ...]
    count: str
    """Where the row that decides is counted; the others of its key are duplicates."""
    after: Row | None
    op: str | None = None
    """What the change log says."""


ORDERED = [
    Line("new row", None, (live(5),), "inserted", live(5), "insert"),
    Line("new row without an order value", None, (live(None),), "inserted", live(None), "insert"),
    Line("delete of an unknown key", None, (delete(5),), "ignored", None),
    Line("delete of an unknown key without an order value", None, (delete(None),), "ignored", None),
    Line("newest of one batch", None, (live(6, "new"), live(5, "old")), "inserted", live(6, "new"), "insert"),
    Line("tie in one batch", None, (live(5, "one"), live(5, "two")), "inserted", live(5, "two"), "insert"),
    Line(
        "null is the oldest in one batch",
        None,
        (live(1, "dated"), live(None, "undated")),
        "inserted",
        live(1, "dated"),
        "insert",
    ),
    Line("born and deleted in one batch", None, (live(5), delete(6)), "ignored", None),
    Line("deleted and born in one batch", None, (delete(5), live(6)), "inserted", live(6), "insert"),
    Line("tie of row and delete: the later line", None, (delete(5), live(5)), "inserted", live(5), "insert"),
    Line("late row", live(5), (live(4, "b"),), "stale", live(5)),
    Line("late row with the same content", live(5), (live(4),), "stale", live(5)),
    Line("row without an order value", live(5), (live(None, "b"),), "stale", live(5)),
    Line("late delete", live(5), (delete(4),), "stale", live(5)),
    Line("late row of a deleted key", dead(5), (live(4, "b"),), "stale", dead(5)),
    Line("undated row of a deleted key", dead(5), (live(None, "b"),), "stale", dead(5)),
    Line("late delete of a deleted key", dead(5), (delete(4),), "stale", dead(5)),
    Line(
        "undated row over an undated one",
        live(None),
        (live(None, "b"),),
        "updated",
        live(None, "b"),
        "update",
    ),
    Line("dated row over an undated one", live(None), (live(1, "b"),), "updated", live(1, "b"), "update"),
    Line("undated delete of an undated row", live(None), (delete(None),), "deleted", dead(NEWEST), "delete"),
    Line("newer row, other content", live(5), (live(6, "b"),), "updated", live(6, "b"), "update"),
    Line("same order value, other content", live(5), (live(5, "b"),), "updated", live(5, "b"), "update"),
    Line(
        "two updates in one batch",
        live(5),
        (live(7, "new"), live(6, "old")),
        "updated",
        live(7, "new"),
        "update",
    ),
    Line(
        "two updates with one order value",
        live(5),
        (live(6, "one"), live(6, "two")),
        "updated",
        live(6, "two"),
        "update",
    ),
    Line("content becomes null", live(5), (live(6, None),), "updated", live(6, None), "update"),
    Line("same again", live(5), (live(5),), "unchanged", live(5)),
    Line("same content, newer", live(5), (live(6),), "unchanged", live(6)),
    Line("same content, undated before", live(None), (live(1),), "unchanged", live(1)),
    Line("away and back in one batch", live(5), (live(6, "b"), live(7)), "unchanged", live(7)),
    Line("newer delete", live(5), (delete(6),), "deleted", dead(6), "delete"),
    Line("delete with the same order value", live(5), (delete(5),), "deleted", dead(5), "delete"),
    Line("delete without an order value", live(5), (delete(None),), "deleted", dead(NEWEST), "delete"),
    Line(
        "delete without an order value of a newer row",
        live(20),
        (delete(None),),
        "deleted",
        dead(20),
        "delete",
    ),
    Line("update and delete in one batch", live(5), (live(6, "b"), delete(7)), "deleted", dead(7), "delete"),
    Line(
        "delete and update in one batch",
        live(5),
        (delete(6), live(7, "b")),
        "updated",
        live(7, "b"),
        "update",
    ),
    Line("deleted, same content, newer", dead(5), (live(6),), "undeleted", live(6), "undelete"),
    Line("deleted, other content, newer", dead(5), (live(6, "b"),), "undeleted", live(6, "b"), "undelete"),
    Line("deleted, same content, same order value", dead(5), (live(5),), "unchanged", dead(5)),
    Line("deleted, other content, same order value", dead(5), (live(5, "b"),), "unchanged", dead(5)),
    Line("deleted twice", dead(5), (delete(5),), "unchanged", dead(5)),
    Line("deleted, delete without an order value", dead(5), (delete(None),), "unchanged", dead(5)),
    Line("the newest of the batch", None, (live(NEWEST),), "inserted", live(NEWEST), "insert"),
]

UNORDERED = [
    Line("new row", None, (live(_UNTIMED),), "inserted", live(_UNTIMED), "insert"),
    Line("delete of an unknown key", None, (delete(_UNTIMED),), "ignored", None),
    Line(
        "later line of one batch",
        None,
        (live(_UNTIMED, "one"), live(_UNTIMED, "two")),
        "inserted",
        live(_UNTIMED, "two"),
        "insert",
    ),
    Line("born and deleted in one batch", None, (live(_UNTIMED), delete(_UNTIMED)), "ignored", None),
    Line(
        "other content",
        live(_UNTIMED),
        (live(_UNTIMED, "b"),),
        "updated",
        live(_UNTIMED, "b"),
        "update",
    ),
    Line("same again", live(_UNTIMED), (live(_UNTIMED),), "unchanged", live(_UNTIMED)),
    Line("delete", live(_UNTIMED), (delete(_UNTIMED),), "deleted", dead(_UNTIMED), "delete"),
    Line(
        "deleted, same content",
        dead(_UNTIMED),
        (live(_UNTIMED),),
        "undeleted",
        live(_UNTIMED),
        "undelete",
    ),
    Line(
        "deleted, other content",
        dead(_UNTIMED),
        (live(_UNTIMED, "b"),),
        "undeleted",
        live(_UNTIMED, "b"),
        "undelete",
    ),
    Line("deleted twice", dead(_UNTIMED), (delete(_UNTIMED),), "unchanged", dead(_UNTIMED)),
]

ONLY_INSERTED = [
    Line("new row", None, (live(5),), "inserted", live(5), "insert"),
    Line("newest of one batch", None, (live(6, "new"), live(5, "old")), "inserted", live(6, "new"), "insert"),
    Line("delete of an unknown key", None, (delete(5),), "ignored", None),
    Line("known key, newer", live(5), (live(6, "b"),), "ignored", live(5)),
    Line("known key, same content", live(5), (live(5),), "ignored", live(5)),
    Line("known key, older", live(5), (live(4, "b"),), "ignored", live(5)),
    Line("delete of a known key", live(5), (delete(6),), "ignored", live(5)),
]


@dataclass(frozen=True)
class Outcome:
    """What became of all lines of one setting."""

    rows: dict[str, Row]
    ops: dict[str, str]
    counts: RowCounts
    changeset: int | None


def _keyed(line: Line, row: Row) -> Row:
    return {"id": line.name} | {name: value for name, value in row.items() if value is not _UNTIMED}


def load_lines(works: Works, lines: list[Line]) -> Outcome:
    """Load what is stored, delete what is to be dead, then load what comes in."""
    stored = [(line, line.stored) for line in lines if line.stored is not None]
    works.load([_keyed(line, row | {"deleted": False}) for line, row in stored])
    buried = [(line, row) for line, row in stored if row["deleted"]]
    if buried:
        works.load([_keyed(line, delete(row["at"])) for line, row in buried])
    result = works.load([_keyed(line, row) for line in lines for row in line.incoming])
    changeset = result.changeset or 0
    return Outcome(works.rows(), works.ops(changeset), result.rows, result.changeset)


def expected_counts(lines: list[Line]) -> dict[str, int]:
    counts = Counter(line.count for line in lines)
    read = sum(len(line.incoming) for line in lines)
    return {"read": read, "duplicates": read - len(lines), **counts}


SETTINGS: dict[str, tuple[list[Line], dict[str, Any]]] = {
    "soft": (ORDERED, {"order_by": "at"}),
    "hard": (
        [line for line in ORDERED if line.stored is None or not line.stored["deleted"]],
        {"order_by": "at", "deletes": "hard"},
    ),
    "without order": (UNORDERED, {}),
    "insert only": (ONLY_INSERTED, {"order_by": "at", "mode": "insert_only"}),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> Callable[[str, str], Outcome]:
    """Load all lines of a setting in a lane, once."""

    @cache
    def outcome(setting: str, lane: str) -> Outcome:
        lines, keys = SETTINGS[setting]
        return load_lines(Works(tmp_path_factory.mktemp("works"), lane=lane, **keys), lines)

    return outcome


@pytest.mark.parametrize(
    ("setting", "lane", "line"),
    [
        pytest.param(setting, lane, line, id=f"{setting}, {lane}: {line.name}")
        for setting, (lines, _) in SETTINGS.items()
        for lane in LANES
        for line in lines
    ],
)
def test_line(outcomes: Callable[[str, str], Outcome], setting: str, lane: str, line: Line) -> None:
    """The table holds what the line says, and so does the change log."""
    after = line.after
    if setting == "hard" and after is not None and after["deleted"]:
        after = None
    outcome = outcomes(setting, lane)
    assert outcome.rows.get(line.name) == (_keyed(line, after) if after is not None else None)
    assert outcome.ops.get(line.name) == line.op


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_counts_add_up(outcomes: Callable[[str, str], Outcome], setting: str, lane: str) -> None:
    """Every row that was read is counted under one outcome."""
    lines, _ = SETTINGS[setting]
    counts = asdict(outcomes(setting, lane).counts)
    assert {name: number for name, number in counts.items() if number} == expected_counts(lines)
    assert counts["read"] == sum(counts.values()) - counts["read"]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("touch", "stored", "late"), [("on", 6, "stale"), ("off", 5, "updated")], ids=["touch on", "touch off"]
)
def test_late_row_after_a_touch(make: Make, lane: str, touch: str, stored: int, late: str) -> None:
    """With `touch: on` a newer order value is stored although nothing else changed; nobody logs it."""
    works = make(lane=lane, order_by="at", touch=touch)
    works.load([{"id": 1, **live(5)}])
    touched = works.load([{"id": 1, **live(6)}])
    assert touched.rows.unchanged == 1
    assert touched.batches == (touch == "on")
    assert touched.changeset == 1
    assert works.rows()[1] == {"id": 1, **live(stored)}
    result = works.load([{"id": 1, **live(5, "late")}])
    assert getattr(result.rows, late) == 1
    assert works.rows()[1]["title"] == ("a" if touch == "on" else "late")
    assert [row["title"] for row in works.log()] == (["a"] if touch == "on" else ["a", "late"])


@pytest.mark.parametrize("lane", LANES)
def test_ignored_columns_and_delete_when(make: Make, lane: str) -> None:
    """A change of ignored columns alone is none; a condition that is null deletes nothing."""
    works = make(lane=lane, delete_when="status = 'gone'", ignore_columns=["seen", "status"])
    first = [{"id": number, "title": "a", "status": "new", "seen": 1} for number in range(4)]
    works.load(first)
    result = works.load(
        [
            {"id": 0, "title": "a", "status": "old", "seen": 2},
            {"id": 1, "title": "b", "status": None, "seen": 2},
            {"id": 2, "title": "a", "status": "gone", "seen": 2},
            {"id": 3, "title": "a", "status": None, "seen": None},
        ]
    )
    assert (result.rows.unchanged, result.rows.updated, result.rows.deleted) == (2, 1, 1)
    rows = works.rows()
    assert rows[0] == {**first[0], "deleted": False}
    assert rows[1] == {"id": 1, "title": "b", "status": None, "seen": 2, "deleted": False}
    assert rows[2] == {**first[2], "deleted": True}
    assert rows[3] == {**first[3], "deleted": False}
    assert works.ops(2) == {1: "update", 2: "delete"}


@pytest.mark.parametrize("lane", LANES)
def test_other_name_for_the_mark_of_deletes(make: Make, lane: str) -> None:
    """`deleted_column` names the mark in source and table; a null mark is none."""
    works = make(lane=lane, deleted_column="withdrawn")
    works.load([{"id": 1, "withdrawn": None}, {"id": 2, "withdrawn": False}])
    result = works.load([{"id": 1, "withdrawn": None}, {"id": 2, "withdrawn": True}])
    assert (result.rows.unchanged, result.rows.deleted) == (1, 1)
    assert [works.rows()[number]["withdrawn"] for number in (1, 2)] == [False, True]


@pytest.mark.parametrize("lane", LANES)
def test_ties_between_files_and_lines(make: Make, lane: str) -> None:
    """One batch of two files: equal order values go to the later file, and there to the later line."""
    works = make(lane=lane, order_by="at", columns={"id": "int", "at": "int", "text": "string"})
    header = ["id", "at", "text"]
    works.folder.write_csv("landing/b.csv", header, [(1, 1, "b"), (2, 1, "b1"), (2, 1, "b2"), (3, 0, "b")])
    works.folder.write_csv("landing/a.csv", header, [(1, 1, "a1"), (1, 1, "a2"), (3, 1, "a"), (4, 1, "a")])
    result = works.project.run("works")
    assert {number: row["text"] for number, row in works.rows().items()} == {1: "b", 2: "b2", 3: "a", 4: "a"}
    assert (result.rows.read, result.rows.inserted, result.rows.duplicates) == (8, 4, 4)


@pytest.mark.parametrize("lane", LANES)
def test_batch_without_changes_commits_nothing(make: Make, lane: str) -> None:
    """Unchanged and stale rows make no snapshot and no changeset, in the table and in the log."""
    works = make(lane=lane, order_by="at")
    works.load([{"id": 1, **live(5)}, {"id": 2, **live(5)}])
    before = works.snapshots(), works.snapshots(CHANGES)
    result = works.load([{"id": 1, **live(5)}, {"id": 1, **live(4, "b")}, {"id": 2, **live(4, "b")}])
    assert (result.rows.unchanged, result.rows.duplicates, result.rows.stale) == (1, 1, 1)
    assert (result.batches, result.changeset) == (0, 1)
    assert (works.snapshots(), works.snapshots(CHANGES)) == before


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("deletes", ["soft", "hard"])
def test_row_after_a_delete_that_left_no_row(make: Make, lane: str, deletes: str) -> None:
    """Rows not newer than a remembered delete of their key are stale, newer ones are inserted."""
    works = make(lane=lane, order_by="at", deletes=deletes)
    works.load([{"id": 1, **live(5)}, {"id": 2, **live(5)}, {"id": 3, **live(5)}])
    gone = works.load([{"id": number, **delete(7)} for number in (1, 2, 3, 4, 5, 6)])
    assert (gone.rows.deleted, gone.rows.ignored) == (3, 3)
    again = works.load([{"id": 4, **delete(6)}, {"id": 4, **delete(7)}])
    assert (again.rows.ignored, again.batches) == (1, 0)
    late = {1: 6, 2: 7, 3: 8, 4: 6, 5: 7, 6: 8, 7: 1}
    result = works.load([{"id": number, **live(at, "late")} for number, at in late.items()])
    assert result.rows.read == 7
    # A soft-deleted row is there: with the same order value it stays as it is.
    assert (result.rows.stale, result.rows.unchanged) == ((3, 1) if deletes == "soft" else (4, 0))
    assert (result.rows.inserted, result.rows.undeleted) == ((2, 1) if deletes == "soft" else (3, 0))
    alive = {number for number, row in works.rows().items() if not row["deleted"]}
    assert alive == {3, 6, 7}


@pytest.mark.parametrize("lane", LANES)
def test_row_between_two_deletes(make: Make, lane: str) -> None:
    """A row older than the newest delete of its key stays deleted."""
    works = make(lane=lane, order_by="at")
    works.load([{"id": 1, **live(5)}])
    works.load([{"id": 1, **delete(6)}])
    works.load([{"id": 1, **delete(8)}])
    assert works.load([{"id": 1, **live(7)}]).rows.stale == 1
    assert works.rows()[1]["deleted"] is True
