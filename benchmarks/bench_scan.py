"""How much slower is a scan after many upserts, with no maintenance between them?

A table on a local disk is read whole by Spark, before and after a number of upserts of half known and
half new keys; the rows that the upserts added are counted out. The figure that counts is the ratio.

    python benchmarks/bench_scan.py [--rows N] [--upserts N] [--size N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.upserts import Batches, fill_by_run, works_pipeline
from esker.pipeline.api import OpenProject
from tests.folder import Folder

WANTED = 1.4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--upserts", type=int, default=20)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    batches = Batches(arguments.rows)
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"works": works_pipeline("works")},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        project = folder.open()
        fill_by_run(folder, "works", batches.rows)
        before = project.engine.spark.table("lake.db.works.snapshots").collect()[-1]["snapshot_id"]
        for _ in range(arguments.upserts):
            project.load("works", batches.next(arguments.size))
        # Both are scanned now, in turn: the same machine, the same warmth.
        then = f"lake.db.works VERSION AS OF {before}"
        scans: dict[str, list[float]] = {then: [], "lake.db.works": []}
        for number in range(arguments.rounds + 1):
            for relation, taken in scans.items():
                elapsed = scan(project, relation)
                if number:
                    taken.append(elapsed)
        first, last = (statistics.median(taken) for taken in scans.values())
        print(
            f"scan of {arguments.rows:,} rows after {arguments.upserts} upserts of {arguments.size:,}: "
            f"{last / first:.2f} times as long (wanted at most {WANTED})   [{first:.2f} s, {last:.2f} s]"
        )


def scan(project: OpenProject, relation: str) -> float:
    """Read every column of every row, and return how long that took."""
    started = time.monotonic()
    project.engine.spark.sql(f"SELECT * FROM {relation}").write.format("noop").mode("overwrite").save()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
