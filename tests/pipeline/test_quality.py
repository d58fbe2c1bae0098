"""What every check found is kept with each publish, and can be compared at two points in time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from esker.errors import NoQuality, UnknownPoint
from tests.contracts.folder import MakeFolder, contract, contract_folder

pytestmark = pytest.mark.spark

CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - name: amount
      logicalType: integer
      logicalTypeOptions: {minimum: 0}
      quality: [{metric: nullValues, mustBe: 0, severity: warning, name: filled}]
    """,
    '- {type: sql, name: total, query: "SELECT sum(amount) FROM ${table}", mustBeLessThan: 1000}',
)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"mode": "upsert", "key": ["id"], "lane": "small"},
        {"mode": "upsert", "key": ["id"], "lane": "large"},
    ],
    ids=["append", "small", "large"],
)
def test_history(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    folder = contract_folder(make_folder, CONTRACT, **keys)
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 10), (2, 20), (3, -1), (4, "")])
    first = folder.run()
    folder.write_csv("landing/b.csv", ["id", "amount"], [(1 if keys else 7, 30), (5, 50)])
    second = folder.run()
    opened = folder.open()
    now = {each.metric: each for each in opened.quality("shop.sales", beside="1")}
    rows = 4 if keys else 5
    assert (now["record_count"].value, now["record_count"].earlier) == (rows, 3)
    assert (now["rows_read"].value, now["rows_read"].earlier) == (2, 4)
    assert (now["amount.minimum"].value, now["amount.minimum"].earlier) == (0, 1)
    assert (now["filled"].value, now["filled"].change) == (0, -1)
    assert now["total"].passed is True
    assert now["total"].value == (100 if keys else 110)
    assert now["record_count"].snapshot == second.snapshot_id
    then = {each.metric: each for each in opened.quality("shop.sales", as_of="1")}
    assert then["record_count"].snapshot == first.snapshot_id
    assert (then["rows_bad"].value, then["total"].value) == (1, 30)
    stored = folder.rows("shop.sales__quality", "table", "metric", "value", "snapshot")
    assert ("shop.sales", "record_count", 3, first.snapshot_id) in stored
    assert {row[0] for row in stored} == {"shop.sales"}
    count = opened.table("shop.sales__quality").count()
    assert folder.run().rows.read == 0
    assert folder.open().table("shop.sales__quality").count() == count


def test_points(make_folder: MakeFolder) -> None:
    folder = contract_folder(make_folder, CONTRACT)
    with pytest.raises(NoQuality):
        folder.open().quality("shop.sales")
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 10)])
    folder.run()
    opened = folder.open()
    assert opened.quality("shop.sales", as_of="2001-01-01") == []
    assert opened.quality("shop.sales", as_of="2100-01-01T00:00:00Z") == opened.quality("shop.sales")
    between = datetime.now(UTC).isoformat()
    folder.write_csv("landing/b.csv", ["id", "amount"], [(2, 10), (3, 10)])
    folder.run()
    now = {each.metric: each for each in opened.quality("shop.sales", beside=between)}
    assert (now["record_count"].value, now["record_count"].earlier) == (3, 1)
    with pytest.raises(UnknownPoint):
        opened.quality("shop.sales", as_of="yesterday")


def test_without_a_contract_none_is_kept(make_folder: MakeFolder) -> None:
    folder = make_folder()
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    with pytest.raises(NoQuality):
        folder.open().quality("shop.sales")
