"""The example with payments: every count of every layer and day, worked out from the files by hand."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from examples.payments import run as example

import esker
from esker.load.counts import RowCounts
from esker.pipeline.api import OpenProject
from tests.folder import SPARK

pytestmark = pytest.mark.spark
KEY = b"for this test"
Row = dict[str, str]
Line = tuple[str, str, str]
"""Day, merchant and currency."""


@dataclass
class Model:
    """The three layers in plain Python, from the files and nothing else."""

    sent: list[Row] = field(default_factory=list)
    silver: dict[str, dict[str, Row]] = field(default_factory=dict)
    """Good payments by day and id."""
    bad: set[str] = field(default_factory=set)
    gold: dict[Line, tuple[int, int, Decimal]] = field(default_factory=dict)

    def take(self, file: Path) -> dict[str, RowCounts]:
        """Take over a file; return what must become of its rows in each layer."""
        header, *lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
        whole = [dict(zip(header, line, strict=True)) for line in lines if len(line) == len(header)]
        torn = len(lines) - len(whole)
        self.sent += whole
        bronze = RowCounts(read=len(lines), inserted=len(whole), quarantined=torn)
        return {
            "bronze": bronze,
            "silver": self._swap({row["paid_at"][:10] for row in whole}),
            "gold": self._sum_up(),
        }

    def _swap(self, days: set[str]) -> RowCounts:
        once: dict[str, Row] = {}
        for row in self.sent:
            if row["paid_at"][:10] in days:
                once.setdefault(row["transaction_id"], row)
        bad = {name for name, row in once.items() if not is_good(row["amount"])}
        self.bad |= bad
        for day in days:
            self.silver[day] = {
                name: row for name, row in once.items() if row["paid_at"][:10] == day and name not in bad
            }
        return RowCounts(read=len(once), inserted=len(once) - len(bad), quarantined=len(bad))

    def _sum_up(self) -> RowCounts:
        rows: dict[Line, list[Row]] = defaultdict(list)
        for day, payments in self.silver.items():
            for row in payments.values():
                rows[day, row["merchant"], row["currency"]].append(row)
        before = self.gold
        self.gold = {
            line: (
                len(of_line),
                len({row["card_number"] for row in of_line}),
                sum((Decimal(row["amount"]) for row in of_line), Decimal()),
            )
            for line, of_line in rows.items()
        }
        assert before.keys() <= self.gold.keys()
        unchanged = sum(before.get(line) == values for line, values in self.gold.items())
        inserted = len(self.gold.keys() - before.keys())
        updated = len(self.gold) - inserted - unchanged
        return RowCounts(read=len(self.gold), inserted=inserted, updated=updated, unchanged=unchanged)


def is_good(amount: str) -> bool:
    return re.fullmatch(r"\d+(\.\d\d?)?", amount) is not None and 0 < Decimal(amount) <= 50_000


def pseudonym(card_number: str) -> str:
    return hmac.new(KEY, card_number.encode(), hashlib.sha256).hexdigest()


@pytest.fixture
def folder(tmp_path: Path, spark_running: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's project, in the Spark of the tests."""
    monkeypatch.setenv("PAYMENTS_KEY", KEY.decode())
    folder = tmp_path / "payments"
    example.make_project(folder)
    with (folder / "esker.yml").open("a", encoding="utf-8") as stream:
        stream.write(f"\nspark: {json.dumps(SPARK)}\n")
    return folder


def test_payments(folder: Path) -> None:
    """Three days of files, through all layers: each count, each row, and nothing more the second time."""
    model, seen = Model(), esker.open(folder)
    counts = []
    files: set[str] = set()
    for delivery in example.DELIVERIES:
        example.deliver(folder, delivery)
        expected = model.take(folder / "landing" / delivery.name)
        results = example.run_day(folder)
        assert {layer: result.rows for layer, result in results.items()} == expected
        assert all(example.outcomes(result) for result in results.values())
        counts.append([(rows.read, rows.inserted, rows.quarantined) for rows in expected.values()])
        check_tables(seen, model)
        if delivery.has_channel:
            assert files_of_day(seen, "2026-11-03") == files
        files = files_of_day(seen, "2026-11-03")
    assert counts == [
        [(49, 48, 1), (45, 40, 5), (4, 4, 0)],
        [(53, 52, 1), (93, 83, 10), (8, 4, 0)],
        [(52, 51, 1), (97, 87, 10), (12, 4, 0)],
    ]
    found = example.balance(seen)
    found.check()
    assert (found.bronze, found.duplicates, found.bad, found.silver) == (151, 9, 15, 127)
    check_drift(seen)
    check_nobody_is_named(seen)

    tables = tables_of(seen, "bronze") + tables_of(seen, "silver") + tables_of(seen, "gold")
    before = {table: snapshots(seen, table) for table in tables}
    again = example.run_day(folder)
    assert {layer: result.rows for layer, result in again.items()} == {
        "bronze": RowCounts(),
        "silver": RowCounts(),
        "gold": RowCounts(),
    }
    assert {table: snapshots(seen, table) for table in tables} == before


def test_a_stop_between_the_layers(folder: Path) -> None:
    """What bronze has and silver lacks is found by the next run, although bronze has nothing new for it."""
    model = Model()
    example.deliver(folder, example.DELIVERIES[0])
    expected = model.take(folder / "landing" / example.DELIVERIES[0].name)
    assert esker.open(folder).run("bronze").rows == expected["bronze"]
    results = example.run_day(folder)
    assert {layer: result.rows for layer, result in results.items()} == {
        **expected,
        "bronze": RowCounts(),
    }


def check_tables(seen: OpenProject, model: Model) -> None:
    """Each table holds exactly the model's rows."""
    bronze = seen.table("bronze.payments").select("transaction_id", "amount", "email", "file_no").collect()
    assert sorted((r[0], r[1], r[2], str(r[3])) for r in bronze) == sorted(
        (row["transaction_id"], row["amount"], row["email"], row["file_no"]) for row in model.sent
    )
    silver = [as_texts(row.asDict()) for row in seen.table("silver.payments").collect()]
    assert sorted(silver, key=repr) == sorted(
        (
            {
                "transaction_id": name,
                "day": day,
                "paid_at": row["paid_at"].replace("T", " "),
                "merchant": row["merchant"],
                "currency": row["currency"],
                "amount": f"{Decimal(row['amount']):.2f}",
                "amount_sent": row["amount"],
                "card": pseudonym(row["card_number"]),
                "file_no": row["file_no"],
                "channel": row.get("channel"),
            }
            for day, payments in model.silver.items()
            for name, row in payments.items()
        ),
        key=repr,
    )
    gold = seen.table("gold.turnover").collect()
    assert {(str(r.day), r.merchant, r.currency): (r.payments, r.cards, r.total) for r in gold} == model.gold
    waiting = seen.table("silver.payments__quarantine").select("payload").collect()
    assert {json.loads(row.payload)["transaction_id"] for row in waiting} == model.bad


def as_texts(row: Mapping[str, Any]) -> dict[str, str | None]:
    values = {**row, "channel": row.get("channel")}  # silver has it from the third day on
    return {name: None if value is None else str(value) for name, value in values.items()}


def check_drift(seen: OpenProject) -> None:
    """The new column and the wider type came with the days that were swapped."""
    silver = seen.table("silver.payments")
    kinds = dict(silver.dtypes)
    assert (kinds["file_no"], kinds["channel"]) == ("bigint", "string")
    rows = silver.selectExpr("string(day)", "channel IS NOT NULL", "file_no > 2147483647").collect()
    # The late payments of the first day came with the new column, the others of that day before it.
    assert Counter(tuple(row) for row in rows) == {
        ("2026-11-02", False, False): 43,
        ("2026-11-02", True, True): 4,
        ("2026-11-03", False, False): 40,
        ("2026-11-04", True, True): 40,
    }


def check_nobody_is_named(seen: OpenProject) -> None:
    """No name, address or card number stands in any table of silver and gold, Esker's own among them."""
    personal = {value for person in example.PEOPLE for value in person}
    kept = texts(seen, "bronze")
    assert all(value in kept for value in personal)
    shared = texts(seen, "silver") + texts(seen, "gold")
    assert "silver.payments__quarantine" in shared
    assert not [value for value in personal if value in shared]


def texts(seen: OpenProject, namespace: str) -> str:
    """Return all that stands in the tables of a namespace."""
    found = {table: seen.table(table).collect() for table in tables_of(seen, namespace)}
    return repr(found)


def tables_of(seen: OpenProject, namespace: str) -> list[str]:
    rows = seen.sql(f"SHOW TABLES IN lake.{namespace}").show().rows
    return sorted(f"{namespace}.{row['tableName']}" for row in rows)


def snapshots(seen: OpenProject, table: str) -> list[int]:
    rows = seen.sql(f"SELECT snapshot_id FROM lake.{table}.snapshots").show().rows
    return sorted(row["snapshot_id"] for row in rows)


def files_of_day(seen: OpenProject, day: str) -> set[str]:
    """Return the data files that silver has of a day."""
    files = f"SELECT file_path FROM lake.silver.payments.files WHERE partition.day = date '{day}'"
    return {row["file_path"] for row in seen.sql(files).show().rows}
