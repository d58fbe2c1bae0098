"""How much slower is a scan after many upserts, with no maintenance between them?

A table on a local disk is read whole by Spark, as it was before a number of upserts of half known and
half new keys, and as it is after them, in turn. Once every column of every row is looked at (rows, distinct
keys, checksums), as a reader would; once rows are only handed through, which shows the cost of many small
files at its highest. The figures that count are the ratios.

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
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.folder import Folder


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--upserts", type=int, default=20)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    batches, wanted = Batches(arguments.rows), Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"works": works_pipeline("works")},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        project = folder.open()
        fill_by_run(folder, "works", batches.rows)
        before = (
            project.engine.spark.table("lake.db.works.snapshots")
            .orderBy("committed_at")
            .collect()[-1]["snapshot_id"]
        )
        for _ in range(arguments.upserts):
            project.load("works", batches.next(arguments.size))
        print(
            f"scans of {arguments.rows:,} rows after {arguments.upserts} upserts of {arguments.size:,}, "
            f"beside the same before them, medians of {arguments.rounds} rounds:"
        )
        for name, (scan, most) in SCANS.items():
            # Both are scanned now, in turn: the same machine, the same warmth.
            taken: dict[str, list[float]] = {f" VERSION AS OF {before}": [], "": []}
            for number in range(arguments.rounds + 1):
                for version, seconds in taken.items():
                    started = time.monotonic()
                    scan(project, f"lake.db.works{version}")
                    if number:
                        seconds.append(time.monotonic() - started)
            first, last = (statistics.median(seconds) for seconds in taken.values())
            goal = f" ({wanted.at_most(f'scan, {name}', last / first, most)})" if most is not None else ""
            print(f"  {name:12} {last / first:5.2f} times as long{goal}   [{first:.2f} s, {last:.2f} s]")
    wanted.end()


def look_at_all(project: OpenProject, relation: str) -> None:
    """Read every column of every row, and put it into a sum."""
    project.engine.spark.sql(
        "SELECT count(*), count(DISTINCT id), sum(xxhash64(content) % 1000), sum(length(content)), "
        f"sum(CAST(deleted AS int)), max(last_modified) FROM {relation}"
    ).collect()


def hand_through(project: OpenProject, relation: str) -> None:
    """Read every column of every row, and do nothing with it."""
    project.engine.spark.sql(f"SELECT * FROM {relation}").write.format("noop").mode("overwrite").save()


SCANS = {"looked at": (look_at_all, 1.4), "handed over": (hand_through, None)}
"""How tables are scanned, and how many times as long that may take."""


if __name__ == "__main__":
    main()
