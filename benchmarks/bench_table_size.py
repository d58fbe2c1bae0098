"""Does the cost of an upsert grow with the table?

A small and a large table of the same kind in one project, on one local disk, filled by one run each;
batches of half known and half new keys go into both in turn. The figure that counts is the ratio.

    python benchmarks/bench_table_size.py [--small N] [--large N] [--sizes 1,100,10000] [--rounds N]
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
from tests.folder import Folder

WANTED = 1.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--sizes", default="1,100,10000")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    wanted = Wanted()
    tables = {"small": Batches(arguments.small), "large": Batches(arguments.large)}
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={name: works_pipeline(name) for name in tables},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        project = folder.open()
        for name, batches in tables.items():
            fill_by_run(folder, name, batches.rows)
        print(
            f"upserts into {arguments.large:,} rows and into {arguments.small:,}, medians of "
            f"{arguments.rounds} rounds:",
            flush=True,
        )
        for size in (int(text) for text in arguments.sizes.split(",")):
            taken: dict[str, list[float]] = {name: [] for name in tables}
            for number in range(arguments.rounds + 1):
                for name, batches in tables.items():
                    rows = batches.next(size)
                    started = time.monotonic()
                    project.load(name, rows)
                    if number:  # the first round warms both up
                        taken[name].append(time.monotonic() - started)
            small, large = (statistics.median(values) for values in taken.values())
            goal = wanted.at_most(f"upsert of {size:,} rows", large / small, WANTED)
            print(
                f"  {size:>9,} rows: {large / small:5.2f} times as long ({goal})"
                f"   [{small:.2f} s, {large:.2f} s]",
                flush=True,
            )
    wanted.end()


if __name__ == "__main__":
    main()
