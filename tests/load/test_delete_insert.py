"""Mode delete_insert: what a batch holds of a key takes the place of all that is stored of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from esker.ledger.change_log import CHANGESET, HASH_AFTER, HASH_BEFORE, OP, ROW
from tests.load.works import QUARANTINE, Make, Works, large_in_soak

pytestmark = pytest.mark.spark


@pytest.fixture
def make(make: Make) -> Make:
    return lambda **keys: make(mode="delete_insert", **keys)


def lines(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows of orders: several lines each. `op` is what many sources call it; it is a column like others."""
    return [{"id": number, "op": line, "deleted": bool(rest)} for number, line, *rest in rows]


def stored(works: Works) -> list[tuple[Any, Any]]:
    return sorted((row["id"], row["op"]) for row in works.read())


def replayed(works: Works) -> list[tuple[Any, Any]]:
    """Return the rows as the change log alone tells them."""
    rows: Counter[tuple[Any, Any]] = Counter()
    for change in works.log():
        rows[change["id"], change["op"]] += 1 if change[OP] == "insert" else -1
    assert all(count >= 0 for count in rows.values())
    return sorted(rows.elements())


@large_in_soak
def test_rows_of_a_key_are_swapped(make: Make, lane: str) -> None:
    """Several rows of a key here and there: what is the same stays, the rest goes or comes and is logged."""
    works = make(lane=lane)
    first = works.load(lines((1, "a"), (1, "a"), (1, "b"), (2, "a"), (3, "a"), (3, "b"), (None, "lost")))
    assert (first.rows.read, first.rows.inserted, first.rows.quarantined) == (7, 6, 1)
    assert [row["row"] for row in works.read(QUARANTINE)] == [6]

    # 1: one "a" less and a "c"; 2 is not mentioned; 3 goes; 4 never was there; 5 is deleted and comes anew.
    batch = lines((1, "a"), (1, "b"), (1, "c"), (3, "", "x"), (4, "", "x"), (5, "", "x"), (5, "n"), (5, "n"))
    second = works.load(batch)
    assert stored(works) == [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (5, "n"), (5, "n")]
    counts = second.rows
    assert (counts.inserted, counts.unchanged, counts.deleted, counts.ignored) == (3, 2, 1, 2)
    assert (counts.missing, counts.read) == (2, len(batch))
    changes = [row for row in works.log() if row[CHANGESET] == 2]
    assert sorted((row[OP], row["id"], row["op"]) for row in changes) == [
        ("delete", 1, "a"),
        ("delete", 3, "a"),
        ("delete", 3, "b"),
        ("insert", 1, "c"),
        ("insert", 5, "n"),
        ("insert", 5, "n"),
    ]
    assert len({row[ROW] for row in changes}) == len(changes)
    for row in changes:
        assert (row[HASH_BEFORE] is None) == (row[OP] == "insert")
        assert (row[HASH_AFTER] is None) == (row[OP] == "delete")
    assert replayed(works) == stored(works)


@large_in_soak
def test_rows_that_are_there_already_are_not_written(make: Make, lane: str) -> None:
    """The same rows in another order commit nothing, however often they come; one more of them does."""
    works = make(lane=lane)
    rows = lines((1, "a"), (1, "b"), (1, "b"), (2, "a"))
    works.load(rows)
    again = works.load(rows[::-1])
    assert (again.rows.unchanged, again.batches) == (4, 0)
    more = works.load([*lines((1, "b")), *rows[:3]])
    assert (more.rows.unchanged, more.rows.inserted, more.rows.missing) == (3, 1, 0)
    assert stored(works) == [(1, "a"), (1, "b"), (1, "b"), (1, "b"), (2, "a")] == replayed(works)


@large_in_soak
def test_composite_key_condition_and_ignored_columns(make: Make, lane: str) -> None:
    """Keys of several columns; deletes by condition; a column whose change alone is none."""
    works = make(lane=lane, key=["id", "op"], delete_when="v = -1", ignore_columns=["seen"])
    rows = [{"id": n, "op": o, "v": v, "seen": 1} for n, o, v in [(1, "a", 1), (1, "a", 2), (1, "b", 1)]]
    works.load(rows)
    batch = [rows[0] | {"seen": 2}, rows[2] | {"v": -1}]
    counts = works.load(batch).rows
    assert (counts.unchanged, counts.missing, counts.deleted) == (1, 1, 1)
    assert works.read() == [{"id": 1, "op": "a", "v": 1, "seen": 1}]
