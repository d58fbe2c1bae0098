"""How fast are upserts at every batch size, beside PyIceberg's `upsert` and Spark's MERGE?

One table of a million rows each, on one local disk; batches of half known and half new keys, handed
over as Arrow to all, one after the other in every round. Esker's `project.load` does more than the others:
newest version wins, changed rows only, change log, ledger. MERGE is measured twice: alone, and with an insert
of the batch's keys into a log of its own. The figures that count are the ratios; seconds depend on the
machine.

    python benchmarks/bench_upsert.py [--rows N] [--sizes 1,100,10000] [--rounds N] [--buckets 100]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from benchmarks.upserts import Batches, PyIceberg, Targets, Way, compare, pyiceberg_catalog
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.folder import Folder

TARGETS: Targets = {
    "PyIceberg": {1: 6, 10: 10, 100: 20, 1_000: 18, 10_000: 18, 100_000: 12},
    "MERGE": {1: 2, 10: 2, 100: 2, 1_000: 2, 10_000: 2, 100_000: 1.5, 1_000_000: 1},
    "MERGE and log": {1: 3, 10: 3, 100: 3, 1_000: 3, 10_000: 3, 100_000: 2, 1_000_000: 1.2},
}
BUCKET_TARGETS: Targets = {"PyIceberg": {1_000: 20, 10_000: 20, 100_000: 20}}


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
    bench.wanted.end()


class Bench:
    """Tables with the same rows, and ways to upsert into them."""

    def __init__(self, scratch: Path, rows: int, buckets: int) -> None:
        keys: dict[str, Any] = {"partition_by": [f"bucket({buckets}, id)"]} if buckets else {}
        pipeline = Folder.files_pipeline(
            "landing/*.parquet", "parquet", "db.works", mode="upsert", key=["id"], order_by="last_modified"
        )
        self.folder = Folder(
            scratch / "project",
            pipelines={"works": pipeline | keys},
            spark={"master": "local[2]", "driver_memory": "8g"},
        )
        self.batches, self.buckets = Batches(rows), buckets
        self.wanted = Wanted()
        self.project: OpenProject = self.folder.open()
        self.spark = self.project.engine.spark
        self.pyiceberg = self._pyiceberg(scratch)

    def fill(self) -> None:
        """Give all tables the same rows."""
        for rows in self.batches.first():
            self.project.load("works", rows)
            self.pyiceberg.append(rows)
        layout = f"PARTITIONED BY (bucket({self.buckets}, id))" if self.buckets else ""
        for name in ("merged", "merged_logged"):
            self.spark.sql(
                f"CREATE TABLE lake.db.{name} USING iceberg {layout} TBLPROPERTIES ('format-version'='2',"
                "'write.merge.mode'='merge-on-read','write.update.mode'='merge-on-read') AS "
                "SELECT id, content, last_modified, deleted FROM lake.db.works"
            )
        self.spark.sql("CALL lake.system.rewrite_data_files(table => 'db.works')")
        self.spark.sql("CREATE TABLE lake.db.merged_log (id string, version int) USING iceberg")

    def compare(self, size: int, rounds: int) -> None:
        """Measure one batch size and print the ratios."""
        ways: dict[str, Way] = {
            "Esker": lambda rows: self.project.load("works", rows),
            "PyIceberg": self.pyiceberg.upsert,
            "MERGE": lambda rows: self._merge(rows, "merged"),
            "MERGE and log": self._merge_and_log,
        }

        def takes_minutes(name: str, number: int) -> bool:
            return name == "PyIceberg" and (size > 100_000 or (self.buckets > 0 and number > 1 < size))

        targets = BUCKET_TARGETS if self.buckets else TARGETS
        compare(ways, self.batches, size, rounds, targets, self.wanted, takes_minutes)

    def check(self) -> None:
        """See that Esker and MERGE, which share the rule of the newest version, hold the same rows."""
        columns = "id, content, last_modified, deleted"
        left = self.spark.sql(f"SELECT {columns} FROM lake.db.works")
        right = self.spark.sql(f"SELECT {columns} FROM lake.db.merged")
        differing = left.exceptAll(right).count() + right.exceptAll(left).count()
        print(f"  rows that differ between Esker's table and the MERGE table: {differing}")
        assert differing == 0

    def _merge(self, rows: pa.Table, table: str) -> None:
        self.spark.createDataFrame(rows).createOrReplaceTempView("incoming")
        self.spark.sql(f"""
            MERGE INTO lake.db.{table} t USING incoming s ON t.id = s.id
            WHEN MATCHED AND s.last_modified > t.last_modified
              AND (s.content <> t.content OR s.deleted <> t.deleted) THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *""")

    def _merge_and_log(self, rows: pa.Table) -> None:
        self._merge(rows, "merged_logged")
        self.spark.sql("INSERT INTO lake.db.merged_log SELECT id, 1 FROM incoming")

    def _pyiceberg(self, scratch: Path) -> PyIceberg:
        catalog = pyiceberg_catalog(scratch)
        return PyIceberg(catalog, "db.works", self.buckets)


if __name__ == "__main__":
    main()
