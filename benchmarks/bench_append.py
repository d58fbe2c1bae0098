"""How fast is an append, beside a plain Spark write of the same rows?

Both read the same Parquet files and write Parquet, in one Spark, one after the other, several rounds.
Esker's run does more: it plans from the ledger, checks every row, records the files and publishes. The
figure that counts is the ratio; seconds depend on the machine.

    python benchmarks/bench_append.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import functions as F

from benchmarks.wanted import Wanted
from tests.folder import Folder

WANTED = 0.9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    wanted = Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"sales": Folder.files_pipeline("landing/*/*.parquet", "parquet")},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        opened = folder.open()
        spark = opened.engine.spark
        rows = spark.range(arguments.rows).select(
            F.concat(F.lit("work/"), F.sha2(F.col("id").cast("string"), 256)).alias("id"),
            F.repeat(F.sha2(F.col("id").cast("string"), 512), 4).alias("content"),
            F.timestamp_seconds(1_700_000_000 + F.col("id")).alias("last_modified"),
            (F.col("id") % 10 == 0).alias("deleted"),
        )
        source = Path(scratch) / "source"
        rows.repartition(8).write.parquet(str(source))
        plain, esker = [], []
        for number in range(arguments.rounds + 1):
            batch = folder.path / "landing" / str(number)
            batch.parent.mkdir(exist_ok=True)
            batch.symlink_to(source)
            started = time.monotonic()
            spark.read.parquet(str(batch)).write.option("compression", "zstd").parquet(
                f"{scratch}/plain-{number}"
            )
            middle = time.monotonic()
            result = opened.run("sales")
            ended = time.monotonic()
            assert result.rows.inserted == arguments.rows
            if number:  # the first round warms both up
                plain.append(middle - started)
                esker.append(ended - middle)
        print(
            f"append of {arguments.rows:,} rows of about 0.6 kB from Parquet, {arguments.rounds} rounds in "
            "one Spark:"
        )
        print(f"  plain Spark write to Parquet   {_seconds(plain)}")
        print(f"  esker run (checked, published) {_seconds(esker)}")
        ratio = statistics.median(plain) / statistics.median(esker)
        goal = wanted.at_least("speed of an append", ratio, WANTED)
        print(f"  speed of esker against plain:  {ratio:.2f} ({goal})")
    wanted.end()


def _seconds(values: list[float]) -> str:
    return f"{statistics.median(values):6.2f} s  (" + ", ".join(f"{value:.2f}" for value in values) + ")"


if __name__ == "__main__":
    main()
