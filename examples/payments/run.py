"""Payments from an acquirer's files: bronze as they came, silver clean, gold summed up.

`run.py [FOLDER]` makes a project (in .demo/payments if no folder is named), lets a file arrive on each of
three days and loads it through the three layers. A second time there is nothing new, and nothing changes.
"""

from __future__ import annotations

import csv
import random
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import esker
from esker.pipeline.api import OpenProject
from esker.pipeline.result import RunResult

HERE = Path(__file__).parent
HEADER = ("transaction_id", "paid_at", "merchant", "currency", "amount")
PERSONAL = ("card_holder", "email", "card_number")
MERCHANTS = {"Bakery": "EUR", "Bookshop": "EUR", "Ferry": "SEK", "Hotel": "GBP"}
PEOPLE = (
    ("Eva Lind", "eva.lind@example.com", "4000001234567899"),
    ("Omar Haddad", "omar@example.org", "5100009876543210"),
    ("Ana Petrović", "petrovic.a@example.net", "4000005555444433"),
    ("Tom O'Neill", "tom.oneill@example.com", "5100001111222233"),
)
BAD_AMOUNTS = ("-12.50", "twelve", "19.999", "250000.00", "100000000000000000000")
PAYMENTS = 40
"""Good payments a day."""


@dataclass(frozen=True)
class Delivery:
    """One of the acquirer's files: the payments of a day, and what else got into it."""

    day: date
    file_no: int
    repeated: int
    """Payments that stand in it twice."""
    resent: int = 0
    """Payments of the first day that were in the first file already."""
    late: int = 0
    """Payments of the first day that come only now."""
    has_channel: bool = False
    """There is a new column, and nobody said so."""

    @property
    def name(self) -> str:
        return f"{self.day}.csv"


DELIVERIES = (
    Delivery(date(2026, 11, 2), 1, repeated=3),
    Delivery(date(2026, 11, 3), 2, repeated=2, resent=2, late=3),
    # From now on the date stands in the number, which is too large for an int.
    Delivery(date(2026, 11, 4), 20261104001, repeated=1, resent=1, late=4, has_channel=True),
)


def make_project(folder: Path) -> None:
    """Make the project, unless it is there."""
    if not (folder / "esker.yml").exists():
        for part in ("contracts", "sources"):
            shutil.copytree(HERE / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "esker.yml", folder)


def deliver(folder: Path, delivery: Delivery) -> None:
    """Let a file arrive, unless it is there. The same file every time."""
    file = folder / "landing" / delivery.name
    if file.exists():
        return
    if delivery.file_no > 2**31:
        announce_large_numbers(folder)
    first = DELIVERIES[0]
    rows = list(payments(delivery.day, "A", PAYMENTS))
    rows += rows[: delivery.repeated]
    bad = payments(delivery.day, "B", len(BAD_AMOUNTS))
    rows += [row | {"amount": amount} for row, amount in zip(bad, BAD_AMOUNTS, strict=True)]
    rows += list(payments(first.day, "A", PAYMENTS))[: delivery.resent]
    rows += payments(first.day, f"L{delivery.day:%d}", delivery.late)
    header = [*HEADER, *PERSONAL, "file_no", *(["channel"] if delivery.has_channel else [])]
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        for number, row in enumerate(rows):
            channel = ("app", "terminal", "web")[number % 3]
            writer.writerow(
                [(row | {"file_no": delivery.file_no, "channel": channel})[key] for key in header]
            )
        # A comma in a name, and no quotes around it: a record with one value too many.
        torn = f"{delivery.day:T%m%d-X},{delivery.day}T23:59:00,Hotel,GBP,80.00,Lind, Eva,"
        stream.write(torn + f"eva.lind@example.com,4000001234567899,{delivery.file_no}")
        stream.write(",web\n" if delivery.has_channel else "\n")


def payments(day: date, series: str, count: int) -> Iterator[dict[str, str]]:
    """Make payments of a day, always the same ones."""
    chance = random.Random(f"{day} {series}")
    for number in range(count):
        merchant = chance.choice(list(MERCHANTS))
        paid_at = datetime.combine(day, time()) + timedelta(seconds=chance.randrange(86_400))
        yield {
            "transaction_id": f"{day:T%m%d}-{series}{number:03}",
            "paid_at": paid_at.isoformat(),
            "merchant": merchant,
            "currency": MERCHANTS[merchant],
            "amount": str(Decimal(chance.randrange(1, 40_000)) / 100),
            **dict(zip(PERSONAL, chance.choice(PEOPLE), strict=True)),
        }


def announce_large_numbers(folder: Path) -> None:
    """Widen a column of bronze: what the acquirer has announced is written into the contract."""
    contract = folder / "contracts/bronze.odcs.yaml"
    text = contract.read_text(encoding="utf-8").replace("version: 1.0.0", "version: 1.1.0")
    contract.write_text(text.replace("physicalType: int,", "physicalType: bigint,"), encoding="utf-8")


def run_day(folder: Path) -> dict[str, RunResult]:
    """Load what has arrived, layer by layer, as `esker run` does."""
    found = {result.pipeline: result for result in esker.open(folder).run_all().pipelines}
    for result in found.values():
        if result.error is not None:
            raise result.error
    return found


def outcomes(result: RunResult) -> dict[str, int]:
    """Return what became of the rows, and make sure that it is told of each of them."""
    counts = asdict(result.rows)
    read, _ = counts.pop("read"), counts.pop("missing")  # of what is missing no row was read
    if read != sum(counts.values()):
        raise SystemExit(f"{result.pipeline}: read {read}, but {counts}")
    return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class Balance:
    """How many payments each layer has, and where the others are."""

    bronze: int
    duplicates: int
    bad: int
    silver: int
    gold: int
    silver_totals: Mapping[str, Decimal]
    gold_totals: Mapping[str, Decimal]

    def check(self) -> None:
        """End the program when the layers do not add up."""
        if not self.bronze - self.duplicates - self.bad == self.silver == self.gold:
            raise SystemExit(f"the layers do not add up: {self}")
        if self.silver_totals != self.gold_totals:
            raise SystemExit(f"the totals differ: {self}")


def balance(project: OpenProject) -> Balance:
    """Count the layers, each from its own table."""
    bronze, silver, gold = map(project.table, ("bronze.payments", "silver.payments", "gold.turnover"))
    sent = bronze.agg(F.count("*"), F.count_distinct("transaction_id")).collect()[0]
    # A day that is swapped again leaves its bad payments in the quarantine again.
    bad = project.table("silver.payments__quarantine").select(
        F.count_distinct(F.get_json_object("payload", "$.transaction_id"))
    )
    return Balance(
        bronze=sent[0],
        duplicates=sent[0] - sent[1],
        bad=bad.collect()[0][0],
        silver=silver.count(),
        gold=gold.agg(F.sum("payments")).collect()[0][0],
        silver_totals=totals(silver, "amount"),
        gold_totals=totals(gold, "total"),
    )


def totals(rows: DataFrame, column: str) -> Mapping[str, Decimal]:
    return {row[0]: row[1] for row in rows.groupBy("currency").agg(F.sum(column)).sort("currency").collect()}


def tell(results: Mapping[str, RunResult]) -> None:
    for layer, result in results.items():
        if not result.rows.read:
            print(f"  {layer:6}  nothing new")
        else:
            parts = " + ".join(f"{count} {name}" for name, count in outcomes(result).items())
            print(f"  {layer:6}  {result.rows.read:4} read = {parts}")


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/payments"
    make_project(folder)
    for delivery in DELIVERIES:
        deliver(folder, delivery)
        print(delivery.name, flush=True)
        tell(run_day(folder))
    found = balance(esker.open(folder))
    found.check()
    print(f"\nbronze has  {found.bronze:4} payments")
    print(f"          - {found.duplicates:4} that came before")
    print(f"          - {found.bad:4} with a bad amount")
    print(f"silver has  {found.silver:4}")
    print(
        f"gold has    {found.gold:4}: "
        + ", ".join(f"{sum} {name}" for name, sum in found.gold_totals.items())
    )


if __name__ == "__main__":
    main(sys.argv[1:])
