"""Copies that follow a table by its change log have its rows, or say why they cannot go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from esker.errors import ChangesDiverged, ChangesMissing, ChangesNotFollowed, TransformRefused
from esker.pipeline.api import OpenProject
from tests.folder import Folder
from tests.recover.damage import point_to, pointer

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]
Rows = Sequence[Mapping[str, Any]]
ORDERS = {
    "source": {"type": "files", "path": "landing/*.jsonl", "format": "jsonl"},
    "table": "shop.orders",
    "mode": "upsert",
    "key": ["id"],
    "delete_when": "gone",
}
CHANGES = {"type": "table", "table": "shop.orders", "read": "changes"}


def made(make_folder: MakeFolder, orders: Mapping[str, Any], **copies: Mapping[str, Any]) -> Folder:
    """A table into which rows are handed over, and copies of it."""
    pipelines: dict[str, Any] = {"orders": {**ORDERS, **orders}}
    for name, keys in copies.items():
        source = {**CHANGES, **keys.get("source", {})}
        pipelines[name] = {
            "table": f"shop.{name}",
            "guard": {"max_delete": "100%"},
            **keys,
            "source": source,
        }
    return make_folder(pipelines=pipelines)


def follow(opened: OpenProject, *copies: str) -> None:
    for name in copies:
        opened.run(name)


def rows(folder: Folder, table: str, columns: Sequence[str], where: str = "true") -> list[tuple[Any, ...]]:
    found = folder.open().table(f"shop.{table}").where(where).select(*columns).collect()
    return sorted((tuple(row) for row in found), key=repr)


def test_copies_of_a_table_with_several_rows_of_a_key(make_folder: MakeFolder) -> None:
    """Lines of bills: those that change, stay, come, go or are alike are there as often as in the table."""
    folder = made(
        make_folder,
        {"mode": "delete_insert", "key": ["bill"]},
        by_line={"mode": "upsert", "key": ["bill", "line"], "deletes": "hard"},
        by_bill={"mode": "delete_insert", "key": ["bill"]},
        cheap={"mode": "upsert", "key": ["bill"], "deletes": "hard", "source": {"where": "line = 1"}},
        alike={"mode": "upsert", "key": ["bill"], "source": {"where": "price > 0"}},
    )
    columns = ("bill", "line", "price")

    def lines(bill: int, *lines: tuple[int, int], gone: bool = False) -> list[dict[str, Any]]:
        return [{"bill": bill, "line": line, "price": price, "gone": gone} for line, price in lines]

    opened = folder.open()
    steps: list[Rows] = [
        [*lines(1, (1, 10), (2, 20), (3, 30)), *lines(2, (1, 5))],
        # One line changes, one stays, one goes; another bill comes.
        [*lines(1, (1, 11), (2, 20)), *lines(3, (1, 7), (2, 8))],
        [*lines(2, (1, 5), gone=True), *lines(3, (2, 8))],
    ]
    for step in steps:
        opened.load("orders", step)
        follow(opened, "by_line", "by_bill", "cheap")
        assert rows(folder, "by_line", columns) == rows(folder, "orders", columns)
        assert rows(folder, "by_bill", columns) == rows(folder, "orders", columns)
        assert rows(folder, "cheap", columns) == rows(folder, "orders", columns, "line = 1")
    assert rows(folder, "by_line", columns) == [(1, 1, 11), (1, 2, 20), (3, 2, 8)]
    with pytest.raises(ChangesNotFollowed, match="cannot be followed") as caught:
        follow(opened, "alike")
    assert "Several of its rows have bill = 1" in caught.value.reason
    # Two rows that are alike in all columns, and two changesets before the copy looks again.
    opened.load("orders", lines(4, (1, 9), (1, 9)))
    opened.load("orders", lines(1, (2, 20)))
    follow(opened, "by_bill")
    assert rows(folder, "by_bill", columns) == rows(folder, "orders", columns)
    with pytest.raises(ChangesNotFollowed, match="cannot be followed") as caught:
        follow(opened, "by_line")
    assert "Several of its rows have bill = 4, line = 1" in caught.value.reason
    assert "mode: delete_insert" in caught.value.remedy


def test_a_copy_has_the_columns_that_the_table_has(make_folder: MakeFolder) -> None:
    """One that was dropped there stays in the log, and neither comes into copies nor stops them."""
    folder = made(
        make_folder,
        {},
        copy={"mode": "upsert", "key": ["id"], "deletes": "hard"},
        frozen={"mode": "upsert", "key": ["id"], "deletes": "hard", "evolution": "freeze"},
    )
    folder.open().load("orders", [{"id": 1, "note": "a", "st`ate": "x", "gone": False}])
    folder.change("orders", drop_columns=["note"])
    opened = folder.open()
    opened.apply(opened.plan(["orders"]))
    assert "note" in opened.table("shop.orders__changes").columns
    follow(opened, "copy", "frozen")
    opened.load("orders", [{"id": 1, "st`ate": "y", "gone": False}, {"id": 2, "st`ate": "z", "gone": False}])
    follow(opened, "copy", "frozen")
    for name in ("copy", "frozen"):
        assert rows(folder, name, ["id", "`st``ate`"]) == [(1, "y"), (2, "z")]
        assert "note" not in folder.open().table(f"shop.{name}").columns


def test_copies_of_a_table_with_versions(make_folder: MakeFolder) -> None:
    """All versions with their ends, or the current ones only; one comes late, and a row is deleted."""
    folder = made(
        make_folder,
        {"mode": "scd2", "order_by": "at"},
        history={"mode": "upsert", "key": ["id", "valid_from"], "deletes": "hard"},
        versions={"mode": "delete_insert", "key": ["id"]},
        current={"mode": "upsert", "key": ["id"], "deletes": "hard", "source": {"where": "is_current"}},
    )
    columns = ("id", "state", "valid_from", "valid_to", "is_current")

    def row(id_: int, day: int, state: str, *, gone: bool = False) -> dict[str, Any]:
        return {"id": id_, "at": datetime(2026, 11, day), "state": state, "gone": gone}

    opened = folder.open()
    steps: list[Rows] = [
        [row(1, 1, "new"), row(1, 5, "paid"), row(2, 1, "new"), row(3, 1, "new")],
        [row(1, 9, "sent"), row(2, 4, "void", gone=True)],
        [row(1, 3, "late"), row(2, 8, "back"), row(4, 2, "new")],
    ]
    for step in steps:
        opened.load("orders", step)
        follow(opened, "history", "versions", "current")
        there = rows(folder, "orders", columns)
        assert rows(folder, "history", columns) == there
        assert rows(folder, "versions", columns) == there
        assert rows(folder, "current", columns) == [each for each in there if each[-1]]
    assert len(there) == 8


def test_a_copy_whose_rows_could_not_be_those_of_the_table(make_folder: MakeFolder) -> None:
    """It is refused before any row is read: by key, by a mark that nobody would see."""
    folder = made(
        make_folder,
        {"mode": "delete_insert", "key": ["bill"]},
        one={"mode": "upsert", "key": ["bill"]},
        blind={"mode": "delete_insert", "key": ["bill"], "delete_when": "price = 0"},
        cut={"mode": "delete_insert", "key": ["bill"], "transform": "SELECT bill, price FROM input"},
    )
    opened = folder.open()
    opened.load("orders", [{"bill": 1, "price": 1, "gone": False}, {"bill": 1, "price": 2, "gone": False}])
    with pytest.raises(ChangesNotFollowed) as one:
        follow(opened, "one")
    assert "in mode upsert it would keep one of them" in one.value.reason
    with pytest.raises(ChangesNotFollowed) as blind:
        follow(opened, "blind")
    assert 'does not ask column "deleted"' in blind.value.reason
    with pytest.raises(TransformRefused) as cut:
        follow(opened, "cut")
    assert 'leaves out column "deleted"' in cut.value.reason


def load(opened: OpenProject, *states: str, first: int = 1) -> None:
    """Load a row for each state, each in a changeset of its own."""
    for number, state in enumerate(states, first):
        opened.load("orders", [{"id": number, "state": state, "gone": False}])


def test_a_gap_in_the_log(make_folder: MakeFolder) -> None:
    """The copy does not pass over it, and is right once it was read whole; so after an upgrade."""
    folder = made(make_folder, {}, copy={"mode": "upsert", "key": ["id"], "deletes": "hard"})
    opened = folder.open()
    load(opened, "a", "b")
    follow(opened, "copy")
    sql = opened.engine.spark.sql
    # A position as earlier versions wrote it: nothing but table and changeset.
    name = "esker.ledger.copy"
    [stored] = sql(f"SHOW TBLPROPERTIES lake.shop.copy ('{name}')").collect()
    entry = json.loads(stored["value"])
    entry["position"] = {key: entry["position"][key] for key in ("table", "changeset")}
    sql(f"ALTER TABLE lake.shop.copy SET TBLPROPERTIES ('{name}' = '{json.dumps(entry)}')")
    opened = folder.open()
    load(opened, "c", first=3)
    follow(opened, "copy")
    assert rows(folder, "copy", ("id", "state")) == [(1, "a"), (2, "b"), (3, "c")]
    load(opened, "z", "y", first=1)
    sql("ALTER TABLE lake.shop.orders__changes SET TBLPROPERTIES ('esker.gaps' = '[[4,4]]')")
    opened = folder.open()
    with pytest.raises(ChangesNotFollowed) as caught:
        follow(opened, "copy")
    assert "has a gap" in caught.value.reason
    assert "esker backfill copy --full" in caught.value.remedy
    with pytest.raises(ChangesMissing):
        opened.changes("shop.orders", since=3)
    opened.backfill("copy", full=True)
    load(opened, "x", first=3)
    follow(opened, "copy")
    assert rows(folder, "copy", ("id", "state")) == [(1, "z"), (2, "y"), (3, "x")]


def test_numbers_that_were_issued_again_after_a_restore(make_folder: MakeFolder) -> None:
    """The table and its log went back together, and other changes have the numbers that were read."""
    folder = made(make_folder, {}, copy={"mode": "upsert", "key": ["id"], "deletes": "hard"})
    opened = folder.open()
    load(opened, "a")
    earlier = {table: pointer(folder, table) for table in ("orders", "orders__changes")}
    load(opened, "b", "c", first=2)
    follow(opened, "copy")
    held = opened.changes("shop.orders")
    assert (held.since, held.until) == (0, 3)
    assert opened.changes("shop.orders", since=held.position).count() == 0
    for table, file in earlier.items():
        point_to(folder, f"file:{file}", table)
    opened = folder.open()
    load(opened, "d", "e", "f", first=4)
    assert opened.changes("shop.orders").until == 4
    with pytest.raises(ChangesNotFollowed) as caught:
        follow(opened, "copy")
    assert "restored" in caught.value.reason
    with pytest.raises(ChangesDiverged):
        held.to_spark()
    with pytest.raises(ChangesDiverged):
        opened.changes("shop.orders", since=held.position)
    opened.backfill("copy", full=True)
    load(opened, "g", first=7)
    follow(opened, "copy")
    expected = [(1, "a"), (4, "d"), (5, "e"), (6, "f"), (7, "g")]
    assert rows(folder, "copy", ("id", "state")) == rows(folder, "orders", ("id", "state")) == expected


def test_another_condition(make_folder: MakeFolder) -> None:
    """Rows that have not changed would stay or be missing: the table is read whole once."""
    copy = {"mode": "upsert", "key": ["id"], "deletes": "hard"}
    folder = made(make_folder, {}, copy={**copy, "source": {"where": "state < 'c'"}})
    opened = folder.open()
    load(opened, "a", "b", "c", "d")
    follow(opened, "copy")
    assert rows(folder, "copy", ("id", "state")) == [(1, "a"), (2, "b")]
    folder.document["pipelines"]["copy"]["source"]["where"] = "state > 'a'"
    folder.save()
    opened = folder.open()
    with pytest.raises(ChangesNotFollowed) as caught:
        follow(opened, "copy")
    assert (
        "where: was `state < 'c'` when the table was read last, and is `state > 'a'`" in caught.value.reason
    )
    opened.backfill("copy", full=True)
    load(opened, "e", first=5)
    follow(opened, "copy")
    assert rows(folder, "copy", ("id", "state")) == [(2, "b"), (3, "c"), (4, "d"), (5, "e")]
