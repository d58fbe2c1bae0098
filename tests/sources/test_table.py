"""Other tables as sources: whole, by what was appended, or by a query; pipelines that feed each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from esker.engine.iceberg.table import TableId
from esker.errors import (
    ChangesNotFollowed,
    InvalidProject,
    NoChangeLog,
    QueryRefused,
    SourceRefused,
    TableNotFound,
)
from esker.ledger.retention import trim
from esker.pipeline.order import in_order
from tests.contracts.folder import contract
from tests.folder import Folder

MakeFolder = Callable[..., Folder]
BRONZE = {
    "source": {"type": "files", "path": "landing/*.jsonl", "format": "jsonl"},
    "table": "shop.bronze",
    "mode": "append",
}


def project(make_folder: MakeFolder, **keys: Any) -> Folder:
    """Files are appended to a table, which another pipeline reads."""
    silver = {"table": "shop.silver", "mode": "append", **keys}
    return make_folder(pipelines={"silver": silver, "bronze": BRONZE})


def put(folder: Folder, name: str, *ids: int, **values: Any) -> None:
    folder.write_jsonl(f"landing/{name}.jsonl", [{"id": number, **values} for number in ids])


def ids(folder: Folder, table: str = "shop.silver") -> list[int]:
    return sorted(row[0] for row in folder.rows(table, "id"))


APPENDED = {"type": "table", "table": "shop.bronze", "read": "appended"}


@pytest.mark.spark
def test_what_was_appended(make_folder: MakeFolder) -> None:
    """In one call, in order, although the reader is declared first; nothing twice, new columns follow."""
    folder = project(make_folder, source=APPENDED)
    put(folder, "a", 1, 2)
    report = folder.open().run_all()
    assert [result.pipeline for result in report.pipelines] == ["bronze", "silver"]
    assert ids(folder) == [1, 2]
    put(folder, "b", 3, country="DE")
    put(folder, "c", 4)
    assert [result.rows.inserted for result in folder.open().run_all().pipelines] == [2, 2]
    assert ids(folder) == [1, 2, 3, 4]
    assert ("DE",) in folder.rows("shop.silver", "country")
    again = folder.run("silver")
    assert (again.rows.read, again.batches) == (0, 0)


@pytest.mark.spark
def test_rows_that_changed_are_not_taken_for_appended_ones(make_folder: MakeFolder) -> None:
    folder = project(make_folder, source=APPENDED)
    put(folder, "a", 1, 2)
    opened = folder.open()
    opened.run_all()
    opened.engine.spark.sql(
        "CALL lake.system.rewrite_data_files(table => 'shop.bronze', options => map('rewrite-all', 'true'))"
    )
    put(folder, "b", 3)
    opened.run_all()  # files that were put together hold no other rows
    assert ids(folder) == [1, 2, 3]
    opened.engine.spark.sql("DELETE FROM lake.shop.bronze WHERE id = 1")
    with pytest.raises(SourceRefused) as raised:
        folder.run("silver")
    assert "Rows were changed or deleted since" in raised.value.reason
    assert "read: whole" in raised.value.remedy


@pytest.mark.spark
def test_a_table_that_was_changed_is_read_whole_once(make_folder: MakeFolder) -> None:
    """What the error says helps: the next run goes on behind it."""
    folder = project(make_folder, source=APPENDED, mode="upsert", key=["id"], deletes="hard")
    put(folder, "a", 1, 2)
    opened = folder.open()
    opened.run_all()
    opened.engine.spark.sql("DELETE FROM lake.shop.bronze WHERE id = 1")
    with pytest.raises(SourceRefused) as raised:
        folder.run("silver")
    assert raised.value.remedy == "Read it whole, once: esker backfill silver --full"
    assert opened.backfill("silver", full=True).status == "held"  # half of the rows are gone
    assert opened.approve("silver").status == "succeeded"
    assert ids(folder) == [2]
    put(folder, "b", 3)
    assert [result.status for result in opened.run_all().pipelines] == ["succeeded", "succeeded"]
    assert ids(folder) == [2, 3]


CHANGES = {"type": "table", "table": "shop.orders", "read": "changes"}


def orders_and_copy(make_folder: MakeFolder, **keys: Any) -> Folder:
    """A table whose rows change, and a copy of it that follows by its change log."""
    orders = {
        "source": {"type": "files", "path": "landing/*.jsonl", "format": "jsonl"},
        "table": "shop.orders",
        "mode": "upsert",
        "key": ["id"],
        "delete_when": "gone",
    }
    copy = {"table": "shop.copy", "mode": "upsert", "key": ["id"], "deletes": "hard", "source": CHANGES}
    return make_folder(pipelines={"copy": {**copy, **keys}, "orders": orders})


def live(folder: Folder) -> list[tuple[Any, ...]]:
    return sorted(folder.rows("shop.copy", "id", "state"))


@pytest.mark.spark
def test_what_changed(make_folder: MakeFolder) -> None:
    """Inserts, updates and deletes follow, each row once; nothing else is read."""
    folder = orders_and_copy(make_folder)
    folder.write_jsonl("landing/1.jsonl", [{"id": n, "state": "new", "gone": n == 9} for n in (1, 2, 3, 9)])
    opened = folder.open()
    opened.run_all()
    assert live(folder) == [(1, "new"), (2, "new"), (3, "new")]
    # Two changesets before the copy looks again: of row 1 only the last word counts.
    folder.write_jsonl("landing/2.jsonl", [{"id": 1, "state": "paid", "gone": False}])
    opened.run("orders")
    folder.write_jsonl(
        "landing/3.jsonl",
        [
            {"id": 1, "state": "sent", "gone": False},
            {"id": 2, "state": "new", "gone": True},
            {"id": 4, "state": "new", "gone": False},
        ],
    )
    opened.run("orders")
    result = opened.run("copy")
    assert (result.rows.read, result.rows.updated, result.rows.deleted, result.rows.inserted) == (3, 1, 1, 1)
    assert live(folder) == [(1, "sent"), (3, "new"), (4, "new")]
    again = opened.run("copy")
    assert (again.rows.read, again.batches) == (0, 0)
    folder.write_jsonl("landing/4.jsonl", [{"id": 2, "state": "back", "gone": False}])
    opened.run_all()
    assert (2, "back") in live(folder)


@pytest.mark.spark
def test_rows_that_no_longer_belong_to_a_copy_leave_it(make_folder: MakeFolder) -> None:
    folder = orders_and_copy(make_folder, source={**CHANGES, "where": "state <> 'sent'"})
    folder.write_jsonl("landing/1.jsonl", [{"id": n, "state": "new", "gone": False} for n in (1, 2)])
    opened = folder.open()
    opened.run_all()
    folder.write_jsonl("landing/2.jsonl", [{"id": 1, "state": "sent", "gone": False}])
    opened.run_all()
    assert live(folder) == [(2, "new")]


@pytest.mark.spark
def test_changes_that_were_forgotten(make_folder: MakeFolder) -> None:
    """The run ends instead of missing them; what it says helps."""
    folder = orders_and_copy(make_folder, guard={"max_delete": "90%"})
    folder.write_jsonl("landing/1.jsonl", [{"id": n, "state": "new", "gone": False} for n in (1, 2)])
    opened = folder.open()
    opened.run_all()
    for number in (2, 3):
        folder.write_jsonl(f"landing/{number}.jsonl", [{"id": 1, "state": str(number), "gone": number == 3}])
        opened.run("orders")
    trim(opened.engine, TableId("lake", "shop.orders__changes"), timedelta(), datetime.now(UTC))
    with pytest.raises(ChangesNotFollowed) as raised:
        opened.run("copy")
    assert "is no longer in its change log" in raised.value.reason
    assert opened.backfill("copy", full=True).status == "succeeded"
    assert live(folder) == [(2, "new")]
    assert opened.run("copy").batches == 0


@pytest.mark.spark
def test_a_table_without_a_change_log(make_folder: MakeFolder) -> None:
    source = {"type": "table", "table": "shop.bronze", "read": "changes"}
    folder = project(make_folder, source=source, mode="upsert", key=["id"])
    put(folder, "a", 1)
    folder.run("bronze")
    with pytest.raises(NoChangeLog):
        folder.run("silver")


@pytest.mark.spark
def test_all_of_a_table(make_folder: MakeFolder) -> None:
    """What is gone there is gone here; as long as there is no other snapshot, nothing is read."""
    source = {"type": "table", "table": "shop.bronze", "where": "id < 10"}
    folder = project(
        make_folder, source=source, mode="sync", key=["id"], deletes="hard", guard={"max_delete": "50%"}
    )
    assert folder.run("silver").rows.read == 0  # bronze is not there yet, and will be
    put(folder, "a", 1, 2, 3, 10)
    opened = folder.open()
    opened.run_all()
    assert ids(folder) == [1, 2, 3]
    assert folder.run("silver").rows.read == 0
    opened.engine.spark.sql("DELETE FROM lake.shop.bronze WHERE id = 2")
    assert folder.run("silver").rows.missing == 1
    assert ids(folder) == [1, 3]
    folder.document["pipelines"]["silver"]["source"]["where"] = "id < 11"
    folder.save()
    assert folder.run("silver").rows.inserted == 1
    assert ids(folder) == [1, 3, 10]


@pytest.mark.spark
def test_a_query(make_folder: MakeFolder) -> None:
    source = {
        "type": "query",
        "sql": "SELECT country, count(*) AS orders FROM shop.bronze GROUP BY country -- by country",
    }
    folder = project(make_folder, source=source, mode="upsert", key=["country"])
    put(folder, "a", 1, 2, country="DE")
    opened = folder.open()
    opened.run_all()
    assert folder.rows("shop.silver", "country", "orders") == [("DE", 2)]
    assert folder.run("silver").rows.read == 0
    put(folder, "b", 3, country="DE")
    put(folder, "c", 4, country="FR")
    opened.run_all()
    assert sorted(folder.rows("shop.silver", "country", "orders")) == [("DE", 3), ("FR", 1)]
    folder.document["pipelines"]["silver"]["source"]["sql"] = (
        "SELECT country, 10 * count(*) AS orders FROM shop.bronze GROUP BY country"
    )
    folder.save()
    assert folder.run("silver").rows.updated == 2  # no table has changed, but the query has
    assert folder.run("silver").rows.read == 0


@pytest.mark.spark
def test_queries_within_queries_are_seen(make_folder: MakeFolder) -> None:
    """A table that is only named in a condition, or by WITH, changes the answer too."""
    sql = """
        WITH big AS (SELECT id FROM shop.bronze WHERE id > 1)
        SELECT id FROM big WHERE id IN (SELECT id FROM lake.shop.wanted)
    """
    folder = project(make_folder, source={"type": "query", "sql": sql}, mode="sync", key=["id"])
    put(folder, "a", 1, 2, 3)
    opened = folder.open()
    opened.run("bronze")
    opened.engine.spark.sql("CREATE TABLE lake.shop.wanted (id BIGINT) USING iceberg")
    opened.engine.spark.sql("INSERT INTO lake.shop.wanted VALUES (1), (2)")
    opened.run("silver")
    assert ids(folder) == [2]
    assert folder.run("silver").rows.read == 0
    opened.engine.spark.sql("INSERT INTO lake.shop.wanted VALUES (3)")
    opened.run("silver")
    assert ids(folder) == [2, 3]


@pytest.mark.spark
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE shop.bronze",
        "SELECT nothing FROM shop.bronze",
        "SELECT 1) AS x; DROP TABLE shop.bronze --",
    ],
)
def test_what_is_no_query_is_never_run(make_folder: MakeFolder, sql: str) -> None:
    folder = project(make_folder, source={"type": "query", "sql": sql}, mode="replace")
    put(folder, "a", 1)
    folder.run("bronze")
    with pytest.raises(QueryRefused) as caught:
        folder.run("silver")
    assert "line 1, column " in caught.value.reason
    assert ids(folder, "shop.bronze") == [1]


@pytest.mark.spark
def test_a_table_that_nobody_makes(make_folder: MakeFolder) -> None:
    folder = project(make_folder, source={"type": "table", "table": "shop.bronce", "read": "appended"})
    with pytest.raises(TableNotFound):
        folder.run("silver")


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ({"type": "table", "table": "shop.bronze"}, "append"),
        ({"type": "table", "table": "shop.bronze", "read": "appended"}, "replace"),
        ({"type": "query", "sql": "SELECT 1"}, "append"),
    ],
)
def test_modes_that_would_repeat_or_lose_rows(
    make_folder: MakeFolder, source: dict[str, Any], mode: str
) -> None:
    with pytest.raises(InvalidProject):
        project(make_folder, source=source, mode=mode).open()


def test_order(make_folder: MakeFolder) -> None:
    """Readers behind writers, else as declared; circles stay as they are."""

    def made(**reads: str) -> list[str]:
        pipelines = {
            name: {
                "source": {"type": "query", "sql": f"SELECT * FROM {table}"},
                "table": f"shop.{name}",
                "mode": "replace",
            }
            for name, table in reads.items()
        }
        opened = make_folder("-".join(reads), pipelines=pipelines).open()
        return in_order(opened.project, list(reads))

    assert made(gold="shop.silver", silver="lake.shop.bronze", bronze="raw.x", other="raw.y") == [
        "bronze",
        "silver",
        "gold",
        "other",
    ]
    assert made(a="shop.b", b="`shop`.`a`") == ["a", "b"]
    assert made(gold="shop.silver", a="shop.b", b="shop.a", silver="shop.a") == ["a", "b", "silver", "gold"]
    assert made(x="shop.xy", xy="raw.x") == ["xy", "x"]
    assert made(x="shop.xyz", xy="raw.x") == ["x", "xy"]


def test_order_by_contracts(make_folder: MakeFolder) -> None:
    """A table that a contract refers to is loaded first, unless what is read says otherwise."""
    query = {"type": "query", "sql": "SELECT * FROM shop.orders"}
    orders = Folder.files_pipeline(contract="orders.odcs.yaml")
    for source, order in (
        (Folder.files_pipeline()["source"], ["customers", "orders"]),
        (query, ["orders", "customers"]),
    ):
        pipelines = {
            "orders": {**orders, "table": "shop.orders"},
            "customers": {"source": source, "table": "shop.customers", "mode": "replace"},
        }
        folder = make_folder(order[0], pipelines=pipelines)
        relation = "{name: customer, logicalType: string, relationships: [{to: shop.customers.id}]}"
        folder.write("orders.odcs.yaml", contract(f"- {relation}").replace("name: sales", "name: orders"))
        assert in_order(folder.open().project, list(pipelines)) == order
