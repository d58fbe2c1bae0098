"""Many tables of a database, each with a pipeline of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from esker.errors import (
    EskerError,
    LedgerForeign,
    ManyPipelines,
    SourceRefused,
    TablesCollide,
    TablesMissing,
    TableUnsuitable,
    UnknownPipeline,
)
from esker.ledger.state import State
from esker.pipeline.result import RunReport
from esker.pipeline.status import PipelineStatus, project_status
from esker.project import load_project
from tests.folder import Folder
from tests.servers.postgres import Database

pytestmark = pytest.mark.spark

MakeFolder = Callable[..., Folder]


def shop(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A project that loads all tables of an SQLite database with orders and customers."""
    source = {"type": "jdbc", "url": "jdbc:sqlite:shop.db", "tables": "*", **keys.pop("source", {})}
    folder = make_folder(
        pipelines={
            "shop": {"source": source, "table": "raw.{table}", "mode": "upsert", **keys},
            "totals": {
                "source": {"type": "query", "sql": "SELECT count(*) AS n FROM raw.orders"},
                "table": "gold.totals",
                "mode": "replace",
            },
        }
    )
    execute(
        folder,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, a TEXT)",
        "CREATE TABLE customers (region TEXT, id INTEGER, PRIMARY KEY (region, id))",
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO customers VALUES ('north', 1)",
    )
    return folder


def execute(folder: Folder, *statements: str) -> None:
    connection = sqlite3.connect(folder.path / "shop.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def told(report: RunReport) -> dict[str, tuple[str, int]]:
    return {result.pipeline: (result.status, result.rows.inserted) for result in report.pipelines}


def error(report: RunReport, pipeline: str) -> EskerError:
    [found] = [result.error for result in report.pipelines if result.pipeline == pipeline]
    assert found is not None
    return found


def status(folder: Folder) -> dict[str, PipelineStatus]:
    project = load_project(folder.path)
    state = State.open(project)
    try:
        return {line.pipeline: line for line in project_status(project, state, state.now())}
    finally:
        state.close()


def test_tables_come_and_go(make_folder: MakeFolder) -> None:
    """Each run loads the tables that are there, new ones as well. What one that is gone has left stays."""
    folder = shop(make_folder)
    assert list(status(folder)) == ["totals", "shop"]
    first = folder.open().run_all()
    assert told(first) == {
        "shop.customers": ("succeeded", 1),
        "shop.orders": ("succeeded", 2),
        "totals": ("succeeded", 1),
    }
    execute(
        folder,
        "CREATE TABLE items (id INTEGER PRIMARY KEY)",
        "INSERT INTO items VALUES (7)",
        "DROP TABLE customers",
        "INSERT INTO orders VALUES (3, 'c')",
    )
    second = folder.open().run_all(["shop"])
    assert told(second) == {
        "shop": ("succeeded", 0),
        "shop.items": ("succeeded", 1),
        "shop.orders": ("succeeded", 1),
    }
    assert second.pipelines[0].notes == (
        "main.customers is no longer in the database; table raw.customers stays as it is",
    )
    assert folder.rows("raw.customers", "region", "id") == [("north", 1)]
    shown = {name: folder.open().show(f"raw.{name}").table for name in ("orders", "customers")}
    assert {name: table.identifier for name, table in shown.items()} == {
        "orders": ("id",),
        "customers": ("region", "id"),
    }
    lines = status(folder)
    assert {name for name, line in lines.items() if line.is_gone} == {"shop.customers"}
    assert (lines["shop.orders"].table, lines["shop.orders"].status) == ("raw.orders", "succeeded")
    # One alone, with a position of its own.
    opened = folder.open()
    assert opened.run("shop.orders").rows.unchanged == 3
    assert opened.peek("shop.items").rows == [{"id": "7"}]
    assert [plan.pipeline for plan in opened.plan(["shop"])] == ["shop.items", "shop.orders"]
    with pytest.raises(TablesMissing, match=r"no table for main\.customers"):
        opened.run("shop.customers")
    with pytest.raises(UnknownPipeline, match=r'"shop\.item"') as caught:
        opened.run("shop.item")
    assert caught.value.remedy == "Did you mean shop.items?"
    with pytest.raises(ManyPipelines):
        opened.run("shop")


def test_one_table_does_not_stop_the_others(make_folder: MakeFolder) -> None:
    """Not one that does not suit, nor two that would become one, nor one that fails."""
    folder = shop(
        make_folder, overrides={"customers": {"source": {"cursor": "nothing", "cursor_order": "commit"}}}
    )
    execute(
        folder,
        "CREATE TABLE keyless (a TEXT)",
        'CREATE TABLE "same name" (id INTEGER PRIMARY KEY)',
        "CREATE TABLE same_name (id INTEGER PRIMARY KEY)",
        'INSERT INTO "same name" VALUES (1)',
    )
    report = folder.open().run_all(["shop"])
    assert {name: found[0] for name, found in told(report).items()} == {
        "shop.keyless": "failed",
        "shop.same_name": "failed",
        "shop.customers": "failed",
        "shop.orders": "succeeded",
    }
    assert isinstance(error(report, "shop.keyless"), TableUnsuitable)
    collision = error(report, "shop.same_name")
    assert isinstance(collision, TablesCollide)
    assert "main.same name, main.same_name" in collision.message
    assert isinstance(error(report, "shop.customers"), SourceRefused)
    assert status(folder)["shop.keyless"].status == "failed"
    plans = {plan.pipeline: plan.error for plan in folder.open().plan(["shop.keyless", "shop.orders"])}
    assert isinstance(plans["shop.keyless"], TableUnsuitable)
    assert plans["shop.orders"] is None
    with pytest.raises(TableUnsuitable):
        folder.open().run("shop.keyless")
    folder.change(
        "shop",
        overrides={
            "keyless": {"mode": "append"},
            "same name": {"table": "raw.other"},
            "same_name": {"table": "raw.one"},
            "customers": {"mode": "sync"},
        },
    )
    assert told(folder.open().run_all(["shop"])) == {
        "shop.customers": ("succeeded", 1),
        "shop.keyless": ("succeeded", 0),
        "shop.orders": ("succeeded", 0),
        "shop.other": ("succeeded", 1),
        "shop.one": ("succeeded", 0),
    }


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({"source": {"tables": ["*", "other.*"]}}, "other.*"),
        ({"overrides": {"ordres": {"mode": "append"}}}, "ordres"),
        ({"source": {"exclude": ["custmers", "tmp_*"]}}, "custmers"),
    ],
)
def test_what_matches_nothing(make_folder: MakeFolder, keys: dict[str, Any], missing: str) -> None:
    """A slip in a name loads nothing: it might have kept out what must not be loaded."""
    folder = shop(make_folder, **keys)
    report = folder.open().run_all()
    found = error(report, "shop")
    assert isinstance(found, TablesMissing)
    assert f"has no table for {missing}" in found.message
    assert found.reason == "It has main.customers, main.orders."
    # Others run all the same.
    assert [result.pipeline for result in report.pipelines] == ["shop", "totals"]


def test_a_database_that_is_down(make_folder: MakeFolder) -> None:
    """Its family fails; what needs only the tables in the lake works on."""
    folder = shop(make_folder, every="1h")
    folder.open().run_all(["shop"])
    (folder.path / "shop.db").rename(folder.path / "away.db")
    report = folder.open().run_all(["shop"])
    assert (report.status, told(report)) == ("failed", {"shop": ("failed", 0)})
    assert status(folder)["shop"].status == "failed"
    assert status(folder)["shop.orders"].status == "succeeded"
    opened = folder.open()
    assert opened.names() == ["totals", "shop.customers", "shop.orders"]
    assert opened.quarantined() == []
    # The table has a pipeline, and it is its loader that inserts.
    opened.sql("INSERT INTO raw.orders (id, a) VALUES (9, 'by hand')")
    assert opened.read_changes("raw.orders", since=1).rows[0]["id"] == 9


def test_a_table_that_takes_the_place_of_another(make_folder: MakeFolder) -> None:
    """It is another source, which the ledger knows: nothing is loaded over what is there."""
    folder = shop(make_folder)
    folder.open().run_all(["shop"])
    execute(folder, "ALTER TABLE orders RENAME TO old", "DROP TABLE customers")
    execute(folder, 'CREATE TABLE "Orders!" (id INTEGER PRIMARY KEY, a TEXT)')
    execute(folder, "DROP TABLE old", 'ALTER TABLE "Orders!" RENAME TO "ORDERS"')
    report = folder.open().run_all(["shop.orders"])
    assert report.pipelines[0].notes[0].startswith("main.customers is no longer in the database")
    assert isinstance(error(report, "shop.orders"), LedgerForeign)
    assert len(folder.rows("raw.orders", "id")) == 2


def test_when_they_are_due(make_folder: MakeFolder) -> None:
    """A table that failed is tried again; the database is not asked for nothing."""
    folder = shop(
        make_folder,
        every="1h",
        overrides={"customers": {"source": {"cursor": "nothing", "cursor_order": "commit"}}},
    )
    assert {name: found[0] for name, found in told(folder.open().run_all(only_due=True)).items()} == {
        "shop.customers": "failed",
        "shop.orders": "succeeded",
    }
    execute(folder, "DROP TABLE orders", "CREATE TABLE items (id INTEGER PRIMARY KEY)")
    folder.change("shop", overrides={})
    assert list(told(folder.open().run_all(only_due=True))) == ["shop", "shop.customers", "shop.items"]
    execute(folder, "CREATE TABLE more (id INTEGER PRIMARY KEY)")
    assert told(folder.open().run_all(only_due=True)) == {}


@pytest.mark.server
def test_schemas_and_names_of_postgresql(
    make_folder: MakeFolder, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that need quotes, keys in their order, partitions with their table, no views."""
    monkeypatch.setenv("SHOP_PASSWORD", database.password)
    with database.connect() as connection:
        for statement in (
            'CREATE SCHEMA "Odd.Schema"',
            'CREATE TABLE "Odd.Schema"."Order ""Details""" (b int, "A.a" int, c int, '
            'PRIMARY KEY ("A.a", b) INCLUDE (c))',
            'INSERT INTO "Odd.Schema"."Order ""Details""" VALUES (1, 2, 3)',
            "CREATE TABLE events (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
            "CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
            "INSERT INTO events VALUES (1, '2026-02-01')",
            "CREATE VIEW seen AS SELECT * FROM events",
        ):
            connection.execute(statement.encode())
    source = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://{database.address}",
        "user": database.user,
        "password": "${SHOP_PASSWORD}",
        "tables": ["*", "Odd*.*"],
    }
    pipeline = {"source": source, "table": "raw.{schema}_{table}", "mode": "sync"}
    folder = make_folder(pipelines={"shop": pipeline})
    assert told(folder.open().run_all()) == {
        "shop.odd_schema.order__details_": ("succeeded", 1),
        "shop.public.events": ("succeeded", 1),
    }
    opened = folder.open()
    assert opened.names() == ["shop.odd_schema.order__details_", "shop.public.events"]
    assert opened.project.pipeline("shop.odd_schema.order__details_").key == ["A.a", "b"]
    assert told(opened.run_all())["shop.public.events"] == ("succeeded", 0)
