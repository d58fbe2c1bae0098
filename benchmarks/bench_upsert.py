"""How fast are upserts at every batch size, beside PyIceberg's `upsert` and Spark's MERGE?

One table of a million rows each, on one local disk; batches of half known and half new keys, handed
over as Arrow to all three, one after the other in every round. Esker's `project.load` does more than
the others: newest version wins, changed rows only, change log, ledger. The figures that count are the
ratios; seconds depend on the machine.

    python benchmarks/bench_upsert.py [--rows N] [--sizes 1,100,10000] [--rounds N] [--buckets 100]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from esker.pipeline.api import OpenProject
from tests.folder import Folder

START = datetime(2026, 1, 1, tzinfo=UTC)
TARGETS: dict[str, dict[int, float]] = {
    "PyIceberg": {1: 6, 10: 10, 100: 20, 1_000: 18, 10_000: 18, 100_000: 12},
    "MERGE": {1: 3, 10: 3, 100: 3, 1_000: 3, 10_000: 3, 100_000: 2, 1_000_000: 1.2},
}
BUCKET_TARGETS: dict[str, dict[int, float]] = {"PyIceberg": {1_000: 20, 10_000: 20, 100_000: 20}, "MERGE": {}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sizes", default="1,10,100,1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--buckets", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        bench = Bench(Path(scratch), arguments.rows, arguments.buckets)
        bench.fill()
        print(f"upserts into {arguments.rows:,} rows, {arguments.rounds} rounds, medians:", flush=True)
        for size in (int(text) for text in arguments.sizes.split(",")):
            bench.compare(size, arguments.rounds)
        bench.check()


class Bench:
    """Three tables with the same rows, and three ways to upsert into them."""

    def __init__(self, scratch: Path, rows: int, buckets: int) -> None:
        keys: dict[str, Any] = {"partition_by": [f"bucket({buckets}, id)"]} if buckets else {}
        pipeline = Folder.files_pipeline(
            "landing/*.parquet", "parquet", "db.works", mode="upsert", key=["id"], order_by="last_modified"
        )
        self.folder = Folder(
            scratch / "project",
            pipelines={"works": pipeline | keys},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        self.rows, self.buckets, self.next_key = rows, buckets, rows
        self.random = random.Random(7)
        self.project: OpenProject = self.folder.open()
        self.spark = self.project.engine.spark
        self.pyiceberg = self._pyiceberg(scratch)

    def fill(self) -> None:
        """Give all three tables the same rows."""
        part = 100_000
        for first in range(0, self.rows, part):
            rows = batch(range(first, min(self.rows, first + part)), version=0, second=0)
            self.project.load("works", rows)
            self.pyiceberg.append(rows.cast(self.pyiceberg.schema().as_arrow()))
        layout = f"PARTITIONED BY (bucket({self.buckets}, id))" if self.buckets else ""
        self.spark.sql(
            f"CREATE TABLE lake.db.merged USING iceberg {layout} TBLPROPERTIES ('format-version'='2',"
            "'write.merge.mode'='merge-on-read','write.update.mode'='merge-on-read') AS "
            "SELECT id, content, last_modified, deleted FROM lake.db.works"
        )
        self.spark.sql("CALL lake.system.rewrite_data_files(table => 'db.works')")
        self.spark.sql("CREATE TABLE lake.db.merged_log (id string, version int) USING iceberg")

    def compare(self, size: int, rounds: int) -> None:
        """Measure one batch size and print the ratios."""
        ways: dict[str, Callable[[pa.Table], Any]] = {
            "Esker": lambda rows: self.project.load("works", rows),
            "PyIceberg": lambda rows: self.pyiceberg.upsert(
                rows.cast(self.pyiceberg.schema().as_arrow()), join_cols=["id"]
            ),
            "MERGE": self._merge,
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            rows = self._next(size)
            for name, upsert in ways.items():
                if name == "PyIceberg" and (size > 100_000 or (self.buckets and number > 1 < size)):
                    continue  # minutes each
                started = time.monotonic()
                upsert(rows)
                if number or (name == "PyIceberg" and self.buckets):  # the first round warms up
                    taken[name].append(time.monotonic() - started)
        medians = {name: statistics.median(values) for name, values in taken.items() if values}
        targets = BUCKET_TARGETS if self.buckets else TARGETS
        told = []
        for name in ("PyIceberg", "MERGE"):
            if name in medians:
                wanted = targets[name].get(size)
                goal = f" (wanted {wanted})" if wanted else ""
                told.append(f"{medians[name] / medians['Esker']:5.1f} x {name}{goal}")
        seconds = ", ".join(f"{name} {value:.2f} s" for name, value in medians.items())
        print(f"  {size:>9,} rows: {'; '.join(told)}   [{seconds}]", flush=True)

    def check(self) -> None:
        """See that Esker and MERGE, which share the rule of the newest version, hold the same rows."""
        columns = "id, content, last_modified, deleted"
        left = self.spark.sql(f"SELECT {columns} FROM lake.db.works")
        right = self.spark.sql(f"SELECT {columns} FROM lake.db.merged")
        differing = left.exceptAll(right).count() + right.exceptAll(left).count()
        print(f"  rows that differ between Esker's table and the MERGE table: {differing}")
        assert differing == 0

    def _next(self, size: int) -> pa.Table:
        known = self.random.sample(range(self.rows), min(self.rows, size - size // 2))
        new = range(self.next_key, self.next_key + size - len(known))
        self.next_key += len(new)
        self.seconds = getattr(self, "seconds", 0) + 1
        return batch([*known, *new], version=self.seconds, second=self.seconds)

    def _merge(self, rows: pa.Table) -> None:
        self.spark.createDataFrame(rows).createOrReplaceTempView("incoming")
        self.spark.sql("""
            MERGE INTO lake.db.merged t USING incoming s ON t.id = s.id
            WHEN MATCHED AND s.last_modified > t.last_modified
              AND (s.content <> t.content OR s.deleted <> t.deleted) THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *""")
        self.spark.sql("INSERT INTO lake.db.merged_log SELECT id, 1 FROM incoming")

    def _pyiceberg(self, scratch: Path) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import BucketTransform
        from pyiceberg.types import BooleanType, NestedField, StringType, TimestamptzType

        catalog = SqlCatalog("bench", uri=f"sqlite:///{scratch}/py.db", warehouse=f"file://{scratch}/py")
        catalog.create_namespace("db")
        schema = Schema(
            NestedField(1, "id", StringType(), required=True),
            NestedField(2, "content", StringType(), required=False),
            NestedField(3, "last_modified", TimestamptzType(), required=False),
            NestedField(4, "deleted", BooleanType(), required=False),
            identifier_field_ids=[1],
        )
        spec = PartitionSpec()
        if self.buckets:
            spec = PartitionSpec(
                PartitionField(
                    source_id=1, field_id=1000, transform=BucketTransform(self.buckets), name="id_bucket"
                )
            )
        return catalog.create_table("db.works", schema, partition_spec=spec)


def batch(keys: Any, *, version: int, second: int) -> pa.Table:
    """Return rows of about a kilobyte."""
    keys = list(keys)
    pad = {key: hashlib.sha512(b"%d %d" % (key, version)).hexdigest() * 8 for key in keys}
    return pa.table(
        {
            "id": [f"work/{hashlib.md5(b'%d' % key).hexdigest()[:16]}" for key in keys],
            "content": [f'{{"key": {key}, "version": {version}, "text": "{pad[key]}"}}' for key in keys],
            "last_modified": pa.array(
                [START + timedelta(seconds=second)] * len(keys), pa.timestamp("us", tz="UTC")
            ),
            "deleted": pa.array([False] * len(keys)),
        }
    )


if __name__ == "__main__":
    main()
