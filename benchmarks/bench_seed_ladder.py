"""How fast do small and narrow tables grow, beside PyIceberg's `upsert`?

A table of a number, a name, a message and a moment, partitioned by `bucket(10, id)` and `day(last_modified)`,
grows by upserts of 1, 10, … rows, half of them known as far as there are any, handed over as Arrow to both,
one after the other in every round. Then a million rows beside Spark's plain append of them to a table of the
same kind. Esker does more: newest version wins, only what differs is written, change log, ledger. The figures
that count are the ratios; seconds depend on the machine.

    python benchmarks/bench_seed_ladder.py [--sizes 1,10,100] [--rounds N] [--large N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from benchmarks.upserts import Way, compare, pyiceberg_catalog
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.folder import Folder

TARGETS = {"PyIceberg": {1: 0.8, 10: 1, 100: 2, 1_000: 5, 10_000: 10, 100_000: 20}}
LARGE = 1.5
"""How many times as long as Spark's plain append the large batch may take."""
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = {"id": "int", "name": "string", "message": "string", "last_modified": "timestamp"}
ROWS = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("message", pa.string()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)
WARMING = 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1,10,100,1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", type=int, default=1_000_000)
    arguments = parser.parse_args()
    wanted = Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        bench = Bench(Path(scratch))
        for _ in range(WARMING):
            bench.load_both(bench.batches.next(1))
        print(f"upserts into a table that grows, {arguments.rounds} rounds, medians:", flush=True)
        for size in (int(text) for text in arguments.sizes.split(",")):
            compare(bench.ways, bench.batches, size, arguments.rounds, TARGETS, wanted)
        bench.check()
        if arguments.large:
            bench.append(arguments.large, wanted)
    wanted.end()


class Growing:
    """Batches whose rows are new, or half of them where so many are known; each is newer than all before."""

    def __init__(self) -> None:
        self.rows, self._version = 0, 0

    def next(self, size: int) -> pa.Table:
        known = min(self.rows, size // 2)
        step = max(self.rows // known, 1) if known else 1
        keys = [*range(0, known * step, step), *range(self.rows, self.rows + size - known)]
        self.rows += size - known
        return self.batch(keys)

    def batch(self, keys: Sequence[int]) -> pa.Table:
        self._version += 1
        moment = START + timedelta(seconds=self._version)
        return pa.table(
            [
                pa.array(keys, pa.int32()),
                pa.array([f"name {key}" for key in keys]),
                pa.array([f"message {self._version} about {key}" for key in keys]),
                pa.array([moment] * len(keys), ROWS.field(3).type),
            ],
            schema=ROWS,
        )


class Bench:
    """Tables with the same rows, and ways to upsert into them."""

    def __init__(self, scratch: Path) -> None:
        layout = ["bucket(10, id)", "day(last_modified)"]
        keys: dict[str, Any] = {"mode": "upsert", "key": ["id"], "order_by": "last_modified"}
        keys |= {"columns": COLUMNS, "partition_by": layout}
        pipelines = {
            name: Folder.files_pipeline("none/*", "parquet", f"db.{name}", **keys)
            for name in ("ladder", "large")
        }
        spark = {"master": "local[2]", "driver_memory": "4g"}
        self.project: OpenProject = Folder(scratch / "project", pipelines=pipelines, spark=spark).open()
        self.batches: Any = Growing()
        self.pyiceberg = _pyiceberg(scratch)
        self.ways: dict[str, Way] = {
            "Esker": lambda rows: self.project.load("ladder", rows),
            "PyIceberg": lambda rows: self.pyiceberg.upsert(rows, join_cols=["id"]),
        }

    def load_both(self, rows: pa.Table) -> None:
        """Upsert rows in both ways."""
        for load in self.ways.values():
            load(rows)

    def check(self) -> None:
        """See that both tables hold the same rows."""
        order = [("id", "ascending")]
        frame = self.project.table("db.ladder").select(*COLUMNS)
        ours = frame.toArrow().sort_by(order).cast(ROWS)
        theirs = self.pyiceberg.scan().to_arrow().select(list(COLUMNS)).cast(ROWS).sort_by(order)
        print(f"  the tables hold the same {len(ours):,} rows: {ours.equals(theirs)}")
        assert ours.equals(theirs)

    def append(self, size: int, wanted: Wanted) -> None:
        """Measure a large batch beside Spark's plain append, which warms up first."""
        spark = self.project.engine.spark
        self.project.load("large", self.batches.batch(range(1_000)))
        spark.sql(
            "CREATE TABLE lake.db.plain (id int, name string, message string, last_modified timestamp) "
            "USING iceberg PARTITIONED BY (bucket(10, id), days(last_modified))"
        )
        taken: dict[str, list[float]] = {"Esker": [], "append": []}
        for number in range(4):
            rows = self.batches.batch(range(number * size, (number + 1) * size))
            started = time.perf_counter()
            spark.createDataFrame(rows).writeTo("lake.db.plain").append()
            middle = time.perf_counter()
            self.project.load("large", rows)
            if number:  # the first round warms both up
                taken["append"].append(middle - started)
                taken["Esker"].append(time.perf_counter() - middle)
        medians = {name: statistics.median(values) for name, values in taken.items()}
        ratio = medians["Esker"] / medians["append"]
        goal = wanted.at_most(f"{size:,} rows beside Spark's append", ratio, LARGE)
        seconds = ", ".join(f"{name} {value:.2f} s" for name, value in medians.items())
        print(
            f"  {size:>9,} rows: {ratio:.2f} times as long as Spark's append ({goal})   [{seconds}]",
            flush=True,
        )


def _pyiceberg(scratch: Path) -> Any:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, DayTransform
    from pyiceberg.types import IntegerType, NestedField, StringType, TimestamptzType

    catalog = pyiceberg_catalog(scratch)
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "name", StringType(), required=False),
        NestedField(3, "message", StringType(), required=False),
        NestedField(4, "last_modified", TimestamptzType(), required=False),
    )
    spec = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=BucketTransform(10), name="id_bucket"),
        PartitionField(source_id=4, field_id=1001, transform=DayTransform(), name="last_modified_day"),
    )
    return catalog.create_table("db.ladder", schema, partition_spec=spec)


if __name__ == "__main__":
    main()
