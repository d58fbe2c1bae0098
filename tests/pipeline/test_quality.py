"""What every check found is kept with each publish, and can be compared at two points in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from esker.engine.iceberg.metadata import Snapshot
from esker.errors import NoQuality, UnknownPoint
from esker.ledger import upkeep
from esker.load import loader
from esker.pipeline.figures import Counted
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder

spark = pytest.mark.spark

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


@spark
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


@spark
def test_the_history_stays_few_files(make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each publish adds a file and a snapshot: runs put them together, and every figure stays."""
    monkeypatch.setattr(upkeep, "MANY_FILES", 4)
    monkeypatch.setattr(loader, "MANY_FILES", 4)
    monkeypatch.setattr(upkeep, "_KEPT_SNAPSHOTS", 2)
    monkeypatch.setattr(upkeep, "KEPT_FOR", timedelta())
    folder = contract_folder(make_folder, CONTRACT, mode="upsert", key=["id"], lane="small")
    files, snapshots, changesets = [], [], []
    for number in range(1, 14):
        folder.write_csv(f"landing/{number}.csv", ["id", "amount"], [(number, number)])
        changesets.append(folder.run().changeset)
        opened = folder.open()
        files.append(opened.table("shop.sales__quality.files").count())
        snapshots.append(opened.table("shop.sales__quality.snapshots").count())
    assert max(files) <= 5
    assert max(snapshots) <= 8
    counts = folder.rows("shop.sales__quality", "changeset", "metric", "value")
    assert sorted(row[0] for row in counts if row[1] == "rows_read") == changesets
    assert sorted(row[2] for row in counts if row[1] == "record_count") == list(range(1, 14))
    now = {each.metric: each for each in opened.quality("shop.sales", beside="3")}
    assert (now["record_count"].value, now["record_count"].earlier) == (13, 3)
    assert [each for each in opened.fsck().tables if each.findings] == []


@spark
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


@spark
def test_without_a_contract(make_folder: MakeFolder) -> None:
    """Counts of rows come from the table's own snapshots: no table is kept beside it."""
    keys: dict[str, Any] = {"mode": "upsert", "key": ["id"], "lane": "small"}
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(**keys)})
    with pytest.raises(NoQuality):
        folder.open().quality("shop.sales")
    folder.write_csv("landing/a.csv", ["id", "name"], [(1, "a"), (2, "b")])
    first = folder.run()
    folder.write_csv("landing/b.csv", ["id", "name"], [(2, "c"), (3, "d"), (4, "e")])
    second = folder.run()
    opened = folder.open()
    [now] = opened.quality("shop.sales", beside="1")
    assert (now.metric, now.value, now.earlier, now.change) == ("record_count", 4, 2, 2)
    assert (now.snapshot, now.changeset) == (second.snapshot_id, 2)
    [then] = opened.quality("shop.sales", as_of="1")
    assert (then.value, then.snapshot) == (2, first.snapshot_id)
    assert opened.quality("shop.sales", as_of="2001-01-01") == opened.quality("shop.sales", held=True) == []
    names = [row.tableName for row in opened.engine.spark.sql("SHOW TABLES IN lake.shop").collect()]
    assert "sales__quality" not in names


@spark
def test_a_contract_that_went(make_folder: MakeFolder) -> None:
    """Counts go on; what the checks found last is still there, with its own changeset."""
    folder = contract_folder(make_folder, CONTRACT)
    folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 10), (2, 20)])
    folder.run()
    del folder.document["pipelines"]["sales"]["contract"]
    folder.save()
    folder.write_csv("landing/b.csv", ["id", "amount"], [(3, 30)])
    folder.run()
    now = {each.metric: each for each in folder.open().quality("shop.sales")}
    assert (now["record_count"].value, now["record_count"].changeset) == (3, 2)
    assert (now["total"].value, now["total"].changeset) == (30, 1)


NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


def snapshot(number: int, hours: int, **summary: str) -> Snapshot:
    """Return one of a line of snapshots, so many hours after noon."""
    told = {name.replace("_", "-"): value for name, value in summary.items()}
    if "changeset" in told:
        told["esker.changeset"] = told.pop("changeset")
    parent = number - 1 or None
    return Snapshot(number, parent, number, NOON + timedelta(hours=hours), "append", told, 0, "")


LINE = [
    snapshot(1, 0, changeset="1", total_records="10"),
    snapshot(2, 1, changeset="2", total_records="30", total_position_deletes="5"),
    snapshot(3, 26, total_records="31", total_position_deletes="5"),
    snapshot(4, 27, changeset="3", total_records="40"),
    snapshot(5, 28, changeset="4", total_records="41", total_equality_deletes="2"),
]


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (None, {"record_count": (None, 5, 4)}),
        (3, {"record_count": (40, 4, 3), "daily_growth": (15, 4, 3)}),
        (2, {"record_count": (26, 3, 2), "daily_growth": (1, 3, 2)}),
        (1, {"record_count": (10, 1, 1)}),
        (0, {}),
        (NOON + timedelta(hours=1.5), {"record_count": (25, 2, 2)}),
        (NOON - timedelta(hours=1), {}),
    ],
)
def test_counts_of_a_line_of_snapshots(point: Any, expected: dict[str, Any]) -> None:
    """Rows that were deleted by position do not count, and nobody says how many a delete by value deletes."""
    found = {each.metric: (each.value, each.snapshot, each.changeset) for each in Counted(LINE).at(point)}
    assert found == expected


def test_counts_after_an_expiry() -> None:
    """A changeset whose snapshot is expired has none; what another engine did since then has its number."""
    cut = LINE[2:]
    assert [each.value for each in Counted(cut).at(2)] == [26]
    assert list(Counted(cut).at(1)) == []
    assert list(Counted([]).at(None)) == []
