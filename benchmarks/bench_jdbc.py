"""How fast does a table of PostgreSQL come into Iceberg, beside a plain Spark copy of it into Parquet?

Both read the same table with Spark's JDBC reader, in as many ranges of its key, and write Parquet packed
with zstd, in one Spark, one after the other, several rounds. Esker's run does more: it reads under one
snapshot, checks every row and publishes. The figure that counts is the ratio.

    python benchmarks/bench_jdbc.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

from benchmarks.wanted import Wanted
from tests.folder import Folder
from tests.servers.postgres import Database, running_postgres

WANTED = 0.9
RANGES = 4
COLUMNS = "id bigint PRIMARY KEY, customer text, amount numeric(12,2), note text, changed timestamptz"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with running_postgres() as server, tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        database = server.new_database()
        fill(database, arguments.rows)
        os.environ["BENCH_PASSWORD"] = database.password
        source = {
            "type": "jdbc",
            "url": f"jdbc:postgresql://{database.address}",
            "user": database.user,
            "password": "${BENCH_PASSWORD}",
            "table": "orders",
            "chunks": {"size": -(-arguments.rows // RANGES)},
            "connections": RANGES,
        }
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"orders": {"source": source, "table": "shop.orders", "mode": "append"}},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        opened = folder.open()
        plain, esker = [], []
        for number in range(arguments.rounds + 1):
            started = time.monotonic()
            copy(opened.engine.spark, database, arguments.rows, f"{scratch}/plain-{number}")
            middle = time.monotonic()
            result = opened.run("orders")
            ended = time.monotonic()
            assert result.rows.inserted == arguments.rows
            if number:  # the first round warms both up
                plain.append(middle - started)
                esker.append(ended - middle)
    # Of runs that followed each other: a machine that others use is faster at one time than at another.
    ratios = [before / after for before, after in zip(plain, esker, strict=True)]
    wanted, ratio = Wanted(), statistics.median(ratios)
    print(f"{arguments.rows:,} rows from PostgreSQL, beside a plain Spark copy into Parquet:")
    print(
        f"  {ratio:.2f} of its speed ({wanted.at_least('speed of a copy', ratio, WANTED)})"
        f"   [{statistics.median(plain):.1f} s, {statistics.median(esker):.1f} s; "
        f"{', '.join(f'{each:.2f}' for each in ratios)}]"
    )
    wanted.end()


def fill(database: Database, rows: int) -> None:
    with database.connect() as connection:
        connection.execute(f"CREATE TABLE orders ({COLUMNS})".encode())
        connection.execute(
            "INSERT INTO orders SELECT i, 'customer ' || i % 100000, (i % 100000) / 100.0, "
            "repeat(md5(i::text), 8), timestamptz '2026-01-01 12:00+00' + i * interval '1 second' "
            f"FROM generate_series(1, {rows}) i".encode()
        )
        connection.execute(b"ANALYZE orders")


def copy(spark: SparkSession, database: Database, rows: int, target: str) -> None:
    """Copy the table as one would do it by hand."""
    properties = {
        "user": database.user,
        "password": database.password,
        "driver": "org.postgresql.Driver",
        "fetchsize": "10000",
    }
    found = spark.read.jdbc(
        f"jdbc:postgresql://{database.address}",
        "orders",
        column="id",
        lowerBound=1,
        upperBound=rows + 1,
        numPartitions=RANGES,
        properties=properties,
    )
    found.write.option("compression", "zstd").parquet(target)


if __name__ == "__main__":
    main()
