"""A table of sales in a lakehouse: SeaweedFS has the files and the catalog, Trino and others read it.

`run.py [FOLDER]` makes a project (in .demo/lakehouse if no folder is named), starts SeaweedFS in it, lets the
sales of three days arrive and loads them; a column is added before the third. A second time there is nothing
new, and nothing changes.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import esker
from esker.pipeline.api import OpenProject
from esker.pipeline.export import export_reader
from esker.project import load_project
from examples.lakehouse.seaweedfs import running

TABLE = "lakehouse.sales"
HEADER = ("order_id", "customer_id", "amount", "country", "ingestion_date")
COUNTRIES = ("NL", "SE", "DE", "")
FIRST = date(2026, 1, 15)
ORDERS = 40
"""Orders a day."""


def make_project(folder: Path) -> None:
    """Make the project, unless it is there."""
    if not (folder / "esker.yml").exists():
        shutil.copytree(HERE / "contracts", folder / "contracts")
        (folder / "landing").mkdir()
        shutil.copy(HERE / "esker.yml", folder)


def sales(number: int) -> list[dict[str, str]]:
    """Return the sales of a day, always the same ones."""
    return [
        {
            "order_id": f"ORD-{number}{order:03}",
            "customer_id": f"CUST-{order % 7 + 101}",
            "amount": str(Decimal(1000 * number + 37 * order) / 100),
            "country": COUNTRIES[order % len(COUNTRIES)],
            "ingestion_date": str(FIRST + timedelta(days=number)),
            "currency": "EUR" if order % 2 else "SEK",
        }
        for order in range(ORDERS)
    ]


def deliver(folder: Path, number: int, *, header: Sequence[str] = HEADER) -> None:
    """Let the file of a day arrive, unless it is there."""
    file = folder / "landing" / f"{FIRST + timedelta(days=number)}.csv"
    if not file.exists():
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, header, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(sales(number))


def announce_currency(folder: Path) -> None:
    """Add a column to the contract, unless it is there. The table follows with `esker plan --apply`."""
    contract = folder / "contracts/sales.odcs.yaml"
    text = contract.read_text(encoding="utf-8")
    if "currency" not in text:
        contract.write_text(text + "      - {name: currency, logicalType: string}\n", encoding="utf-8")


def apply(folder: Path) -> list[str]:
    """Make and alter the table as the contract says; return what was done. Twice is as good as once."""
    project = esker.open(folder)
    plans = project.plan()
    project.apply(plans)
    return [str(change) for plan in plans for change in plan.changes]


def load(folder: Path) -> int:
    """Load what has arrived; return how many rows that were."""
    return esker.open(folder).run("sales").rows.inserted


def files(project: OpenProject) -> set[str]:
    """Return the data files of the table."""
    found = project.engine.spark.sql(f"SELECT file_path FROM iceberg.{TABLE}.files").collect()
    return {row.file_path for row in found}


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/lakehouse"
    make_project(folder)
    with running(folder / ".seaweedfs") as variables:
        os.environ.update(variables)
        for number in range(2):
            deliver(folder, number)
        tell("as the contract says", apply(folder))
        print(f"loaded {load(folder)} rows", flush=True)
        before = files(esker.open(folder))

        announce_currency(folder)
        tell("with a new column", apply(folder))
        deliver(folder, 2, header=(*HEADER, "currency"))
        print(f"loaded {load(folder)} rows", flush=True)

        project = esker.open(folder)
        if not before <= files(project):
            raise SystemExit("files were rewritten for a new column")
        days = project.table(TABLE).groupBy("ingestion_date").agg({"*": "count", "currency": "count"})
        print("\nday         rows  with a currency")
        for row in days.sort("ingestion_date").collect():
            print(f"{row[0]}  {row['count(1)']:4}  {row['count(currency)']:4}")
        if project.table(TABLE).count() != 3 * ORDERS:
            raise SystemExit("rows are missing, or too many")
        print("\nFor Trino (esker export trino):")
        print(export_reader(load_project(folder), "trino").text, end="")


def tell(what: str, changes: Sequence[str]) -> None:
    print(f"{what}: {'; '.join(changes) or 'nothing to do'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
