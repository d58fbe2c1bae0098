"""Payments from an acquirer's files: bronze as they came, silver clean, gold summed up.

`run.py [FOLDER]` makes a project (in .demo/payments if no folder is named), lets a file arrive on each of
three days and loads it through the three layers. A second time there is nothing new, and nothing changes.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

from pyspark.sql import Column, DataFrame, Window
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
        shutil.copytree(HERE / "contracts", folder / "contracts")
        shutil.copy(HERE / "esker.yml", folder)
        (folder / "handed-over").mkdir()


def make_tables(folder: Path) -> None:
    """Make the tables that rows are handed over to, as the contracts say, without rows."""
    project = esker.open(folder)
    project.apply(project.plan(["silver", "gold"]))


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


def load_bronze(project: OpenProject) -> RunResult:
    """Load the files that are new."""
    return project.run("bronze")


def load_silver(project: OpenProject) -> RunResult | None:
    """Swap the days that got something in files that silver has not seen."""
    bronze = project.table("bronze.payments").withColumn("day", F.to_date("paid_at"))
    newest = project.table("silver.payments").agg(F.max("file_no")).collect()[0][0] or 0
    days = [row.day for row in bronze.where(F.col("file_no") > newest).select("day").distinct().collect()]
    if not days:
        return None
    return project.load("silver", cleaned(bronze.where(F.col("day").isin(days))))


def cleaned(bronze: DataFrame) -> DataFrame:
    """Return each payment once, as it first came, without what is personal."""
    # Copies in one file are the same: whichever is taken, the rows are the same each time they are read.
    first = F.row_number().over(Window.partitionBy("transaction_id").orderBy("file_no"))
    once = bronze.withColumn("copy", first).where("copy = 1")
    return (
        once.withColumn("card", keyed_hash(F.col("card_number")))
        .withColumnRenamed("amount", "amount_sent")
        .withColumn("amount", F.expr("try_cast(amount_sent AS decimal(12,2))"))
        .drop("copy", *PERSONAL)
    )


def keyed_hash(value: Column) -> Column:
    """Return the HMAC-SHA256 of a text. A plain hash of a card number is found by trying all numbers."""
    key = os.environ.get("PAYMENTS_KEY", "for this example only").encode().ljust(64, b"\0")
    inner, outer = (F.lit(bytes(byte ^ pad for byte in key)) for pad in (0x36, 0x5C))
    digest = F.unhex(F.sha2(F.concat(inner, value.cast("binary")), 256))
    return F.sha2(F.concat(outer, digest), 256)


def load_gold(project: OpenProject) -> RunResult:
    """Sum up silver. Lines that stay the same are not written."""
    lines = project.table("silver.payments").groupBy("day", "merchant", "currency")
    summed = lines.agg(
        F.count("*").alias("payments"),
        F.countDistinct("card").alias("cards"),
        F.sum("amount").alias("total"),
    )
    return project.load("gold", summed)


def run_day(folder: Path) -> dict[str, RunResult | None]:
    """Load what has arrived, layer by layer."""
    project = esker.open(folder)
    return {"bronze": load_bronze(project), "silver": load_silver(project), "gold": load_gold(project)}


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


def tell(results: Mapping[str, RunResult | None]) -> None:
    for layer, result in results.items():
        if result is None or not result.rows.read:
            print(f"  {layer:6}  nothing new")
        else:
            parts = " + ".join(f"{count} {name}" for name, count in outcomes(result).items())
            print(f"  {layer:6}  {result.rows.read:4} read = {parts}")


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/payments"
    make_project(folder)
    make_tables(folder)
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
