"""Rows in quarantine are looked at, loaded again with today's contract, or left for good."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.errors import NotInQuarantine, ReplayUnsuitable
from esker.pipeline.quarantine import Choice
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder
from tests.recover.damage import point_to, pointer, repair

pytestmark = pytest.mark.spark

CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - {name: amount, logicalType: number, physicalType: "decimal(12,2)", logicalTypeOptions: {minimum: 0}}
    - {name: country, logicalType: string, logicalTypeOptions: {pattern: "^[A-Z]{2}$"}}
    """
)
HEADER = ["id", "amount", "country"]
ROWS = [(1, "1.50", "DE"), (2, "-2.25", "DE"), (3, "-3", "FR"), (4, "4", "it"), ("x", "5", "DE")]


def project(make_folder: MakeFolder, **keys: Any) -> Folder:
    folder = contract_folder(make_folder, CONTRACT, **keys)
    folder.write_csv("landing/a.csv", HEADER, ROWS)
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (1, 4)
    return folder


def relax(folder: Folder) -> None:
    """Let amounts be negative."""
    change_contract(folder, "{minimum: 0}", "{minimum: -100}")


def waiting(folder: Folder) -> dict[tuple[str, ...], int]:
    return {each.rules: each.rows for each in folder.open().quarantined()}


def test_what_waits(make_folder: MakeFolder) -> None:
    folder = project(make_folder)
    assert waiting(folder) == {
        ("amount.minimum",): 2,
        ("country.pattern",): 1,
        ("type",): 1,
    }
    opened = folder.open()
    rows = opened.show_quarantined("sales", Choice(rule="country.pattern"))
    assert [(row["reason"], row["payload"]) for row in rows] == [
        ('column "country": "it" does not match ^[A-Z]{2}$', '{"id":"4","amount":"4","country":"it"}')
    ]
    assert opened.show_quarantined("sales", Choice(ids=(rows[0]["id"],))) == rows
    assert opened.show_quarantined("sales", Choice(changeset=7)) == []
    assert len(opened.show_quarantined("sales", limit=2)) == 2


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"mode": "upsert", "key": ["id"], "lane": "small"},
        {"mode": "upsert", "key": ["id"], "lane": "large"},
    ],
    ids=["append", "small", "large"],
)
def test_replay(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    """What is good by now is loaded, once; what is not waits on, with what is wrong today."""
    folder = project(make_folder, **keys)
    relax(folder)
    result = folder.open().replay("sales")
    assert result.status == "succeeded", result.error
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (4, 2, 2)
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3]
    assert waiting(folder) == {("country.pattern",): 1, ("type",): 1}
    again = folder.open().replay("sales", Choice(rule="country.pattern"))
    assert (again.rows.inserted, again.rows.quarantined) == (0, 1)
    assert sum(waiting(folder).values()) == 2
    assert len(folder.rows("shop.sales", "id")) == 3
    assert folder.run().rows.read == 0  # the position of the source has not moved


def test_some_rows_are_chosen(make_folder: MakeFolder) -> None:
    folder = project(make_folder)
    relax(folder)
    [first, _] = folder.open().show_quarantined("sales", Choice(rule="amount.minimum"))
    assert folder.open().replay("sales", Choice(ids=(first["id"],))).rows.inserted == 1
    assert waiting(folder)[("amount.minimum",)] == 1


def test_discard(make_folder: MakeFolder) -> None:
    """Rows that are left for good stay in the quarantine, and no longer wait."""
    folder = project(make_folder)
    assert folder.open().discard("sales", Choice(rule="amount.minimum")) == 2
    assert waiting(folder) == {("country.pattern",): 1, ("type",): 1}
    kept = folder.open().table("shop.sales__quarantine")
    assert kept.where("resolution IS NULL").count() == 4
    assert kept.where("resolution = 'discarded'").count() == 2
    with pytest.raises(NotInQuarantine):
        folder.open().discard("sales", Choice(rule="amount.minimum"))
    assert folder.open().discard("sales") == 2
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales")
    assert folder.rows("shop.sales", "id") == [(1,)]
    folder.write_csv("landing/b.csv", HEADER, [(9, 1, "DE")])
    assert folder.run().rows.inserted == 1


def test_stored_rows_win(make_folder: MakeFolder) -> None:
    """A row that was corrected in the source meanwhile is not overwritten by the old one."""
    folder = project(make_folder, mode="upsert", key=["id"])
    folder.write_csv("landing/b.csv", HEADER, [(2, "20", "DE")])
    folder.run()
    relax(folder)
    result = folder.open().replay("sales", Choice(rule="amount.minimum"))
    assert (result.rows.inserted, result.rows.ignored) == (1, 1)
    assert [int(row[1]) for row in folder.rows("shop.sales", "id", "amount")] == [1, 20, -3]
    assert ("amount.minimum",) not in waiting(folder)


def test_modes_that_swap_rows(make_folder: MakeFolder) -> None:
    folder = project(make_folder, mode="replace")
    with pytest.raises(ReplayUnsuitable):
        folder.open().replay("sales")
    assert folder.open().discard("sales") == 4


def test_nothing_waits(make_folder: MakeFolder) -> None:
    folder = make_folder()
    assert folder.open().quarantined() == []
    assert folder.open().show_quarantined("sales") == []
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales")


def test_records_that_could_not_be_parsed_wait(make_folder: MakeFolder) -> None:
    """They have no columns to load; those beside them are loaded."""
    folder = contract_folder(make_folder, CONTRACT, path="landing/*.jsonl", format="jsonl")
    lines = ['{"id": 1, "amount": 1}', '{"id": 2, "amo', '{"id": 3, "amount": -1}']
    folder.write("landing/a.jsonl", "\n".join(lines) + "\n")
    folder.run()
    relax(folder)
    assert folder.open().replay("sales").rows.inserted == 1
    assert waiting(folder) == {("malformed",): 1}
    with pytest.raises(NotInQuarantine, match="no such rows") as caught:
        folder.open().replay("sales")
    assert "could not be parsed" in caught.value.reason


def test_values_come_back_as_they_were(make_folder: MakeFolder) -> None:
    """Moments, decimals, bytes and nested values are not rounded on their way through the quarantine."""
    folder = make_folder(
        pipelines={"sales": Folder.files_pipeline("landing/*.parquet", "parquet", bad_rows="quarantine")}
    )
    exact = Decimal("12345678901234567.123456789")
    moment = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    values = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "d": pa.array([exact, exact], pa.decimal128(38, 9)),
            "t": pa.array([moment, moment], pa.timestamp("us", tz="UTC")),
            "b": pa.array([b"\x00\xff", b"\x00\xff"]),
            "n": pa.array([{"x": [exact], "m": [("k", 1.5)]}] * 2, NESTED),
        }
    )
    pq.write_table(values, folder.path / "landing/a.parquet")
    folder.change(columns={"id": {"type": "bigint", "required": True}})
    assert folder.run().rows.quarantined == 1
    folder.change(columns={"id": {"type": "bigint", "required": False}})
    result = folder.open().replay("sales")
    assert result.rows.inserted == 1, result.error
    first, second = folder.open().table("shop.sales").orderBy("id").collect()
    assert first["id"] is None
    for name in ("d", "t", "b", "n"):
        assert first[name] == second[name]
    assert first["d"] == exact


NESTED = pa.struct({"x": pa.list_(pa.decimal128(38, 9)), "m": pa.map_(pa.string(), pa.float64())})


def test_rows_with_columns_that_the_table_lacks(make_folder: MakeFolder) -> None:
    """They are not loaded without them; once the table has the column, they are loaded with it."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(evolution="discard_row")})
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    folder.write_csv("landing/b.csv", ["id", "extra"], [(2, "x")])
    assert folder.run().rows.quarantined == 1
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales")
    folder.change(columns={"extra": "string"})
    plans = folder.open().plan(["sales"])
    folder.open().apply(plans)
    assert folder.open().replay("sales").rows.inserted == 1
    assert folder.rows("shop.sales", "id", "extra") == [(1, None), (2, "x")]


def test_a_replay_that_is_owed_is_not_repeated(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop after the commit and before the quarantine knows of it: nothing is loaded twice."""
    folder = project(make_folder)
    relax(folder)
    with monkeypatch.context() as stopping:
        stopping.setattr("esker.load.loader.drain", lambda *_, **__: {})
        assert folder.open().replay("sales").rows.inserted == 2
    with pytest.raises(NotInQuarantine):
        folder.open().replay("sales", Choice(rule="amount.minimum"))
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3]


def test_discarding_leaves_no_gap_in_the_change_log(make_folder: MakeFolder) -> None:
    folder = project(make_folder, mode="upsert", key=["id"])
    folder.open().discard("sales", Choice(rule="amount.minimum"))
    folder.write_csv("landing/b.csv", HEADER, [(9, 1, "DE")])
    assert folder.run().changeset == 3
    found = folder.open().engine.spark.sql("SHOW TBLPROPERTIES lake.shop.sales__changes").collect()
    assert "esker.gaps" not in {row["key"] for row in found}


def test_discarding_after_a_repair_leaves_the_log_whole(make_folder: MakeFolder) -> None:
    """The log is ahead of the table's outbox then; the log goes on, and so does who reads it."""
    folder = project(make_folder, mode="upsert", key=["id"])
    earlier = str(pointer(folder, "sales"))
    folder.write_csv("landing/b.csv", HEADER, [(8, 1, "DE")])
    assert folder.run().changeset == 2
    # The table alone goes back to the state before: its log holds changeset 2, its outbox ends with 1.
    point_to(folder, f"file:{earlier}", "sales")
    assert [type(done).__name__ for done in repair(folder.open())] == ["Renumber"]
    assert folder.open().discard("sales", Choice(rule="amount.minimum")) == 2
    reader = folder.open().changes("shop.sales", since=3).position
    folder.write_csv("landing/c.csv", HEADER, [(9, 1, "DE")])
    result = folder.run()
    assert (result.changeset, result.log_lag) == (5, 0)
    found = folder.open().changes("shop.sales", since=reader).to_arrow().to_pylist()
    assert sorted((row["_esker_changeset"], row["id"]) for row in found) == [(5, 8), (5, 9)]
    [gaps] = (
        folder.open().engine.spark.sql("SHOW TBLPROPERTIES lake.shop.sales__changes ('esker.gaps')").collect()
    )
    assert gaps["value"] == "[[3,3]]", "that of the repair, and no other"
    assert folder.open().discard("sales") == 2
