"""What do twenty rules cost, beside loading the same rows without any?

One run appends rows from Parquet into a table without a contract, another into a table whose contract has
the same columns and twenty rules; one row in a hundred breaks a rule and goes to the quarantine. Both in
one Spark, one after the other, several rounds. The figure that counts is the ratio. Two rounds before them
are not counted: Java compiles what it runs for that long, beside the runs and on the same cores.

    python benchmarks/bench_rules.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.wanted import Wanted
from tests.folder import Folder

WANTED = 1.4
WARMING = 2
CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: payments
version: 1.0.0
status: active
schema:
  - name: checked
    properties:
      - {name: id, logicalType: string, required: true, logicalTypeOptions: {minLength: 10, maxLength: 80}}
      - {name: customer, logicalType: string, required: true, logicalTypeOptions: {pattern: "^c[0-9]+$"}}
      - name: amount
        logicalType: number
        physicalType: decimal(12,2)
        required: true
        logicalTypeOptions: {minimum: 0, maximum: 1000000}
      - name: currency
        logicalType: string
        logicalTypeOptions: {minLength: 3, maxLength: 3}
        quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [EUR, USD, GBP, CHF]}}]
      - {name: country, logicalType: string, logicalTypeOptions: {pattern: "^[A-Z]{2}$", maxLength: 2}}
      - name: quantity
        logicalType: integer
        physicalType: int
        logicalTypeOptions: {minimum: 1, maximum: 99}
      - {name: email, logicalType: string, logicalTypeOptions: {format: email, maxLength: 100}}
      - name: paid_at
        logicalType: timestamp
        required: true
        quality:
          - {type: custom, engine: esker, name: paid_later, implementation: paid_at >= ordered_at}
          - {metric: nullValues, mustBe: 0, severity: warning}
      - {name: ordered_at, logicalType: timestamp, logicalTypeOptions: {minimum: "2020-01-01T00:00:00Z"}}
      - {name: note, logicalType: string, logicalTypeOptions: {minLength: 1, maxLength: 1000}}
    quality:
      - {type: custom, engine: esker, name: large_ones, implementation: "amount < 500000 OR quantity = 1"}
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        pipelines: dict[str, Any] = {
            name: Folder.files_pipeline(f"landing/{name}/*/*.parquet", "parquet", f"db.{name}")
            for name in ("plain", "checked")
        }
        pipelines["checked"]["contract"] = "contracts/payments.odcs.yaml"
        folder = Folder(
            Path(scratch) / "project",
            pipelines=pipelines,
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        folder.write("contracts/payments.odcs.yaml", CONTRACT)
        opened = folder.open()
        source = Path(scratch) / "source"
        write(opened.engine.spark, source, arguments.rows)
        taken: dict[str, list[float]] = {name: [] for name in pipelines}
        for number in range(WARMING + arguments.rounds):
            for name in pipelines:
                batch = folder.path / "landing" / name / str(number)
                batch.parent.mkdir(parents=True, exist_ok=True)
                batch.symlink_to(source)
                started = time.monotonic()
                result = opened.run(name)
                if number >= WARMING:
                    taken[name].append(time.monotonic() - started)
                bad = arguments.rows // 100 if name == "checked" else 0
                assert (result.rows.read, result.rows.quarantined) == (arguments.rows, bad)
    plain, checked = (statistics.median(values) for values in taken.values())
    # Of runs that followed each other: a machine that others use is faster at one time than at another.
    ratios = [after / before for before, after in zip(taken["plain"], taken["checked"], strict=True)]
    wanted, ratio = Wanted(), statistics.median(ratios)
    print(f"append of {arguments.rows:,} rows with 20 rules, 1 % of them bad, beside the same without rules:")
    print(
        f"  {ratio:.2f} times as long ({wanted.at_most('cost of 20 rules', ratio, WANTED)})"
        f"   [{plain:.1f} s, {checked:.1f} s; {', '.join(f'{each:.2f}' for each in ratios)}]"
    )
    wanted.end()


def write(spark: SparkSession, target: Path, rows: int) -> None:
    """Write rows of which one in a hundred breaks a rule."""
    number = F.col("id")
    text = number.cast("string")
    is_bad = number % 100 == 7
    amount = F.when(is_bad & (number % 200 == 7), F.lit(-1)).otherwise(number % 10_000)
    currencies = F.array(*map(F.lit, ("EUR", "USD", "GBP", "CHF")))
    spark.range(rows).select(
        F.concat(F.lit("payment/"), F.md5(text)).alias("id"),
        F.concat(F.lit("c"), number % 100_000).alias("customer"),
        amount.cast("decimal(12,2)").alias("amount"),
        F.element_at(currencies, (number % 4 + 1).cast("int")).alias("currency"),
        F.when(is_bad & (number % 200 != 7), F.lit("xx")).otherwise(F.lit("DE")).alias("country"),
        (number % 99 + 1).cast("int").alias("quantity"),
        F.concat(F.lit("someone"), number % 1000, F.lit("@example.org")).alias("email"),
        F.timestamp_seconds(1_700_000_100 + number).alias("paid_at"),
        F.timestamp_seconds(1_700_000_000 + number).alias("ordered_at"),
        F.sha2(text, 512).alias("note"),
    ).write.parquet(str(target))


if __name__ == "__main__":
    main()
