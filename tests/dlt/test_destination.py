"""A project as the destination of dlt pipelines: what becomes of rows, tables and types."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import dlt
import pyarrow as pa
import pytest

from esker.engine.iceberg.table import TableId, load
from tests.dlt.conftest import Shop

pytestmark = pytest.mark.spark


def resource(rows: Any, name: str = "orders", **keys: Any) -> Any:
    return dlt.resource(rows, name=name, **keys)


def test_append_and_nested_tables(shop: Shop) -> None:
    rows = [{"id": 1, "lines": [{"sku": "a"}, {"sku": "b"}]}, {"id": 2, "lines": []}]
    shop.run(resource(rows, write_disposition="append"))
    shop.run(resource([{"id": 3, "lines": [{"sku": "c"}]}], write_disposition="append"))
    assert shop.rows("orders", "id") == [(1,), (2,), (3,)]
    assert shop.rows("orders__lines", "sku", "_dlt_list_idx") == [("a", 0), ("b", 1), ("c", 0)]
    orders = {row[0]: row[1] for row in shop.rows("orders", "_dlt_id", "id")}
    parents = [orders[row[0]] for row in shop.rows("orders__lines", "_dlt_parent_id")]
    assert sorted(parents) == [1, 1, 3]
    loads = shop.rows("_dlt_loads", "load_id", "status")
    assert [status for _, status in loads] == [0, 0]
    assert {row[0] for row in shop.rows("orders", "_dlt_load_id")} == {load_id for load_id, _ in loads}
