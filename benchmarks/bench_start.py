"""How long does the first load of a new project take, beside a bare PySpark script that does the same?

Both start a process of their own, load two small CSV files into a new Iceberg table in a new SQLite catalog,
and end. Esker's run does more: it finds out the types without losing anything, checks every row, records
the files and publishes with a ledger entry. The script is the one of the quick start pages, with the jars at
hand. The first round does not count: it brings all files into memory, and Esker's Java may write the archive
of classes that later starts use, as on any machine where Esker has run once. The second way is the script
with Java's options for a short run.

    python benchmarks/bench_start.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.wanted import Wanted
from esker.engine.jars import provide_jars
from esker.engine.java import find_java
from esker.project.scaffold import write_sample

WANTED = 0.5
PAUSE = 8.0
"""Seconds after each way, and five times as many in the first round: Java ends after the process that
started it, and later when it writes the archive."""
SCRIPT = """
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder, jars, options = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.driver.extraClassPath", jars)
    .config("spark.driver.extraJavaOptions", options)
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "jdbc")
    .config("spark.sql.catalog.lake.uri", f"jdbc:sqlite:{folder}/catalog.db")
    .config("spark.sql.catalog.lake.warehouse", f"{folder}/warehouse")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
rows = spark.read.csv(f"{folder}/landing/orders/*.csv", header=True, inferSchema=True)
rows = rows.withColumn("amount", F.col("amount").cast("decimal(12,2)"))
rows = rows.withColumn("placed_on", F.col("placed_on").cast("date"))
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
rows.writeTo("lake.shop.orders").using("iceberg").partitionedBy(F.months("placed_on")).create()
print(spark.table("lake.shop.orders").count())
spark.stop()
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    wanted = Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        ways = {
            "a bare PySpark script": script(Path(scratch), ""),
            "the same with -XX:TieredStopAtLevel=1 -XX:+UseSerialGC": script(
                Path(scratch), "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
            ),
            "esker run of a new project": esker_run(Path(scratch)),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, load in ways.items():
                seconds = load(number)
                if number:  # the first round brings all files into memory
                    taken[name].append(seconds)
                time.sleep(PAUSE if number else 5 * PAUSE)
    bare, flags, esker = taken.values()
    print(f"first load of two small CSV files, each by a process of its own, {rounds} rounds:")
    for name, seconds_of in taken.items():
        told = ", ".join(f"{value:.1f}" for value in seconds_of)
        print(f"  {name:<56} {statistics.median(seconds_of):5.1f} s  ({told})")
    ratio = statistics.median(esker) / statistics.median(bare)
    goal = wanted.at_most("first load, against a bare script", ratio, WANTED)
    print(f"  esker against the bare script: {ratio:.2f} ({goal})")
    print(f"  esker against the one with flags: {statistics.median(esker) / statistics.median(flags):.2f}")
    wanted.end()


def script(scratch: Path, options: str) -> Callable[[int], float]:
    """Return a load by a script of PySpark's."""
    program = scratch / "load.py"
    program.write_text(SCRIPT)
    jars = ":".join(str(jar) for jar in provide_jars(["iceberg", "sqlite"], {}, scratch / "log"))

    def load(number: int) -> float:
        folder = _project(scratch, f"script-{number}-{len(options)}")
        return _timed([sys.executable, str(program), str(folder), jars, options], "10")

    return load


def esker_run(scratch: Path) -> Callable[[int], float]:
    """Return a load by Esker."""
    program = str(Path(sysconfig.get_path("scripts")) / "esker")

    def load(number: int) -> float:
        folder = _project(scratch, f"esker-{number}")
        return _timed([program, "run", "orders", "--project", str(folder)], "succeeded")

    return load


def _project(scratch: Path, name: str) -> Path:
    """Return the folder of a project that has never run."""
    folder = scratch / name
    write_sample(folder)
    return folder


def _timed(command: list[str], told: str) -> float:
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    started = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode or told not in done.stdout:
        sys.exit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return seconds


if __name__ == "__main__":
    main()
