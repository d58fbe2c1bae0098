"""A project as the destination of dlt pipelines: what becomes of rows, tables and types."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import dlt
import pyarrow as pa
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed

from esker.errors import DltRefused
from tests.dlt.shop import Shop

pytestmark = pytest.mark.spark


def resource(rows: Any, **keys: Any) -> Any:
    return dlt.resource(rows, **{"name": "orders", **keys})


def test_append_and_nested_tables(shop: Shop) -> None:
    rows = [{"id": 1, "lines": [{"sku": "a", "notes": ["x"]}, {"sku": "b"}]}, {"id": 2, "lines": []}]
    shop.run(resource(rows, write_disposition="append"))
    assert shop.rows("orders__lines__notes", "value") == [("x",)]
    shop.run(resource([{"id": 3, "lines": [{"sku": "c"}]}], write_disposition="append"))
    assert shop.rows("orders", "id") == [(1,), (2,), (3,)]
    assert shop.rows("orders__lines", "sku", "_dlt_list_idx") == [("a", 0), ("b", 1), ("c", 0)]
    orders = {row[0]: row[1] for row in shop.rows("orders", "_dlt_id", "id")}
    parents = [orders[row[0]] for row in shop.rows("orders__lines", "_dlt_parent_id")]
    assert sorted(parents) == [1, 1, 3]
    loads = shop.rows("_dlt_loads", "load_id", "status")
    assert [status for _, status in loads] == [0, 0]
    assert {row[0] for row in shop.rows("orders", "_dlt_load_id")} == {load_id for load_id, _ in loads}


def test_replace(shop: Shop) -> None:
    """The whole of it, nested tables included, also where nothing is left of them."""
    rows = [{"id": 1, "lines": [{"sku": "a"}]}, {"id": 2, "lines": [{"sku": "b"}]}]
    replace = {"write_disposition": "replace"}
    shop.run([resource(rows, **replace), resource(rows, name="all", **replace)])
    shop.run([resource([{"id": 2, "lines": []}], **replace), resource([], name="all", **replace)])
    assert shop.rows("orders", "id") == [(2,)]
    for table in ("orders__lines", "all", "all__lines"):
        assert shop.rows(table) == []


UPSERT = {"disposition": "merge", "strategy": "upsert"}


def test_merge_as_upsert(shop: Shop) -> None:
    keys = {"primary_key": "id", "write_disposition": UPSERT}
    shop.run(resource([{"id": n, "state": "new"} for n in (1, 2, 3)], **keys))
    assert shop.stored("orders").identifier == ("id",)
    shop.run(resource([{"id": 2, "state": "sent"}, {"id": 3, "state": "new"}], **keys))
    assert shop.rows("orders", "id", "state") == [(1, "new"), (2, "sent"), (3, "new")]
    first, second = sorted(load_id for (load_id,) in shop.rows("_dlt_loads", "load_id"))
    # What has not changed is not written again.
    assert shop.rows("orders", "id", "_dlt_load_id") == [(1, first), (2, second), (3, first)]
    changes = shop.folder.open().read_changes("shop.orders").rows
    assert len(changes) == 4


STRATEGIES = {"upserted": "upsert", "swapped": "delete-insert"}
DELETED = {"deleted": {"data_type": "bool", "hard_delete": True}}


def test_hard_deletes_and_nested_rows(shop: Shop) -> None:
    """With both strategies; what is nested goes with the row that it belongs to."""

    def put(rows: list[dict[str, Any]]) -> None:
        shop.run(
            [
                resource(
                    rows,
                    name=name,
                    primary_key="id",
                    write_disposition={"disposition": "merge", "strategy": strategy},
                    columns=DELETED,
                )
                for name, strategy in STRATEGIES.items()
            ]
        )

    put([{"id": n, "deleted": False, "lines": [{"sku": f"{n}"}]} for n in (1, 2, 3)])
    put(
        [
            {"id": 1, "deleted": True, "lines": [{"sku": "never"}]},
            {"id": 2, "deleted": None, "lines": [{"sku": "two"}]},
            {"id": 9, "deleted": True},
        ]
    )
    for name in STRATEGIES:
        assert shop.rows(name, "id") == [(2,), (3,)]
        assert shop.rows(f"{name}__lines", "sku") == [("3",), ("two",)]
        roots = {row[0] for row in shop.rows(name, "_dlt_id")}
        assert {row[0] for row in shop.rows(f"{name}__lines", "_dlt_root_id")} == roots


def test_merge_by_delete_and_insert(shop: Shop) -> None:
    """By primary key, of which the newest row counts, and by a merge key, whose rows all go."""
    disposition = {"disposition": "merge", "strategy": "delete-insert"}
    sort = {"at": {"dedup_sort": "desc"}}
    orders = [{"id": 1, "at": 5, "state": "paid"}, {"id": 1, "at": 3, "state": "new"}, {"id": 2, "at": 1}]
    days = [{"day": "mon", "n": 1}, {"day": "mon", "n": 1}, {"day": "tue", "n": 2}]
    by_key = {"primary_key": "id", "write_disposition": disposition, "columns": sort}
    by_day = {"name": "days", "merge_key": "day", "write_disposition": disposition}
    shop.run([resource(orders, **by_key), resource(days, **by_day)])
    assert shop.rows("orders", "id", "at", "state") == [(1, 5, "paid"), (2, 1, None)]
    assert shop.rows("days", "day", "n") == [("mon", 1), ("mon", 1), ("tue", 2)]
    # A later load wins, whatever it sorts by: that is only for rows of one load.
    shop.run(
        [
            resource([{"id": 1, "at": 2, "state": "open"}], **by_key),
            resource([{"day": "mon", "n": 7}], **by_day),
        ]
    )
    assert shop.rows("orders", "id", "at", "state") == [(1, 2, "open"), (2, 1, None)]
    assert shop.rows("days", "day", "n") == [("mon", 7), ("tue", 2)]


def test_merge_as_scd2(shop: Shop) -> None:
    """Versions end when the load does not have them, and begin again when it does."""
    keys = {"write_disposition": {"disposition": "merge", "strategy": "scd2"}}

    def put(*rows: dict[str, Any]) -> datetime:
        pipeline = shop.pipeline()
        info = pipeline.run(resource(list(rows), **keys))
        state = pipeline._get_load_storage().loaded_packages.get_load_package_state(info.loads_ids[0])
        created: datetime = state["created_at"]
        return created

    first = put({"id": 1, "city": "Bonn", "tags": ["x"]}, {"id": 2, "city": "Rom", "tags": []})
    second = put({"id": 1, "city": "Kiel", "tags": ["x", "y"]}, {"id": 2, "city": "Rom", "tags": []})
    third = put({"id": 2, "city": "Rom", "tags": []})
    fourth = put({"id": 1, "city": "Bonn", "tags": ["x"]}, {"id": 2, "city": "Rom", "tags": []})
    frame = (
        shop.folder.open()
        .table("shop.orders")
        .selectExpr(
            "id", "city", "unix_micros(_dlt_valid_from)", "unix_micros(_dlt_valid_to)", "_dlt_is_current"
        )
    )
    found = sorted((tuple(row) for row in frame.collect()), key=repr)

    def micros(moment: datetime) -> int:
        return round(moment.timestamp() * 1_000_000)

    expected: list[tuple[Any, ...]] = [
        (1, "Bonn", micros(first), micros(second), False),
        (1, "Bonn", micros(fourth), None, True),
        (1, "Kiel", micros(second), micros(third), False),
        (2, "Rom", micros(first), None, True),
    ]
    assert found == sorted(expected, key=repr)
    assert sorted(row[0] for row in shop.rows("orders__tags", "value")) == ["x", "x", "y"]


@pytest.mark.soak
def test_scd2_by_a_merge_key(shop: Shop) -> None:
    """Only what the load speaks of may end."""
    keys = {"merge_key": "id", "write_disposition": {"disposition": "merge", "strategy": "scd2"}}
    shop.run(resource([{"id": 1, "city": "Bonn"}, {"id": 2, "city": "Rom"}], **keys))
    shop.run(resource([{"id": 1, "city": "Kiel"}], **keys))
    rows = shop.rows("orders", "id", "city", "_dlt_is_current")
    assert rows == [(1, "Bonn", False), (1, "Kiel", True), (2, "Rom", True)]


def test_types_are_exact(shop: Shop) -> None:
    row = {
        "text": "ä",
        "number": 2**53 + 1,
        "ratio": 0.1,
        "amount": Decimal("12345678901234567890.123456789"),
        "flag": True,
        "day": date(2026, 11, 3),
        "at": datetime(2026, 11, 3, 14, 5, 6, 123456, tzinfo=UTC),
        "hour": time(14, 5, 6, 123456),
        "raw": b"\x00\xff",
        "more": {"a": [1, 2]},
    }
    shop.run(resource([row], max_table_nesting=0))
    frame = shop.folder.open().table("shop.orders").drop("_dlt_id", "_dlt_load_id")
    kinds = dict(frame.dtypes)
    stored = frame.selectExpr("*", "unix_micros(at) AS micros").drop("at").first()
    assert stored is not None
    assert stored.asDict() == {
        "text": "ä",
        "number": 2**53 + 1,
        "ratio": 0.1,
        "amount": Decimal("12345678901234567890.123456789"),
        "flag": True,
        "day": date(2026, 11, 3),
        "hour": "14:05:06.123456",
        "raw": bytearray(b"\x00\xff"),
        "more": '{"a":[1,2]}',
        "micros": round(row["at"].timestamp() * 1_000_000),  # type: ignore[attr-defined]
    }
    assert kinds["amount"] == "decimal(38,9)"


def test_arrow_tables(shop: Shop) -> None:
    nested = pa.array([[{"x": 1}], None, []])
    table = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "tags": nested})
    shop.run(resource([table], primary_key="id", write_disposition=UPSERT))
    shop.run(resource([pa.table({"id": [2], "name": ["b"]})], primary_key="id", write_disposition=UPSERT))
    rows = shop.rows("orders", "id", "name", "tags")
    assert rows == [(1, "a", '[{"x":1}]'), (2, "b", None), (3, "c", "[]")]


def test_schema_changes(shop: Shop) -> None:
    """New columns, a column that changes its type, a wider number, a new nested table."""
    narrow = {"count": {"data_type": "bigint", "precision": 32}}
    shop.run(resource([{"id": 1, "size": 5, "count": 1}], columns=narrow))
    wide = {"count": {"data_type": "bigint", "precision": 64}}
    rows = [{"id": 2, "size": "large", "count": 2**40, "city": "Rom", "tags": ["x"]}]
    shop.run(resource(rows, columns=wide))
    found = shop.rows("orders", "id", "size", "size__v_text", "count", "city")
    assert found == [(1, 5, None, 1, None), (2, None, "large", 2**40, "Rom")]
    assert [row[0] for row in shop.rows("orders__tags", "value")] == ["x"]
    assert len(shop.rows("_dlt_version")) == 2


@pytest.mark.soak
def test_refresh_empties_tables(shop: Shop) -> None:
    """`drop_data` takes the rows out with the load that brings new ones; dropping tables is refused."""
    merged = {"primary_key": "id", "write_disposition": UPSERT, "name": "merged"}

    def data(*ids: int) -> Any:
        rows = [{"id": number, "lines": [{"sku": str(number)}]} for number in ids]
        return [resource(rows), resource(rows, **merged)]

    shop.run(data(1, 2))
    shop.run(data(3), refresh="drop_data")
    for name in ("orders", "merged"):
        assert shop.rows(name, "id") == [(3,)]
        assert shop.rows(f"{name}__lines", "sku") == [("3",)]
    with pytest.raises(PipelineStepFailed) as failed:
        shop.run(data(4), refresh="drop_resources")
    assert isinstance(failed.value.exception, DltRefused)
    assert shop.rows("orders", "id") == [(3,)]


@pytest.mark.soak
def test_merge_that_only_inserts(shop: Shop) -> None:
    keys = {"primary_key": "id", "write_disposition": {"disposition": "merge", "strategy": "insert-only"}}
    shop.run(resource([{"id": 1, "state": "new"}], **keys))
    shop.run(resource([{"id": 1, "state": "sent"}, {"id": 2, "state": "new"}], **keys))
    assert shop.rows("orders", "id", "state") == [(1, "new"), (2, "new")]


@pytest.mark.soak
def test_partitions_and_order_from_hints(shop: Shop) -> None:
    columns = {"day": {"data_type": "date", "partition": True}, "id": {"sort": True}}
    shop.run(resource([{"id": 1, "day": "2026-11-03"}], columns=columns))
    stored = shop.stored("orders")
    assert tuple(map(str, stored.partition_fields)) == ("day",)
    assert [field.column for field in stored.sort_fields] == ["id"]


@pytest.mark.soak
def test_tables_that_others_made(shop: Shop) -> None:
    """Rows that are there stay, and are found by their key."""
    opened = shop.folder.open()
    opened.engine.open_catalog("lake")
    opened.engine.spark.sql("CREATE NAMESPACE lake.shop")
    opened.engine.spark.sql("CREATE TABLE lake.shop.orders (id BIGINT NOT NULL, state STRING) USING iceberg")
    opened.engine.spark.sql("INSERT INTO lake.shop.orders VALUES (1, 'old'), (2, 'old')")
    rows = [{"id": 2, "state": "new", "lines": [{"sku": "a"}]}]
    shop.run(resource(rows, primary_key="id", write_disposition={"disposition": "merge"}))
    assert shop.rows("orders", "id", "state") == [(1, "old"), (2, "new")]
    assert shop.rows("orders__lines", "sku") == [("a",)]
