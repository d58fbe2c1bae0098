"""Does peak memory stay flat when a batch grows ten times?

Each batch is upserted by a run in a fresh process, with a Java heap far smaller than the larger batch,
into a table that holds half of its keys. What is told is the most memory that the process and its Java
ever held at once. The figure that counts is the ratio.

    python benchmarks/bench_memory.py [--rows N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import esker
from benchmarks.upserts import works_pipeline, write_works
from benchmarks.wanted import Wanted
from tests.folder import Folder

WANTED = 1.3
HEAP = "1g"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--run", metavar="FOLDER", help="run the pipeline there and tell the peaks")
    arguments = parser.parse_args()
    if arguments.run:
        measured_run(Path(arguments.run))
        return
    wanted = Wanted()
    few, many = (peaks(arguments.rows * times) for times in (1, 10))
    print(
        f"an upsert of {arguments.rows * 10:,} rows of about 1 kB with a heap of {HEAP}, beside one of "
        f"{arguments.rows:,}:"
    )
    for name in few:
        ratio = many[name] / few[name]
        goal = wanted.at_most(f"peak memory of {name}", ratio, WANTED)
        print(
            f"  peak memory of {name:6} {ratio:5.2f} times ({goal})   [{few[name]:,} MB, {many[name]:,} MB]"
        )
    wanted.end()


def peaks(rows: int) -> dict[str, int]:
    """Upsert so many rows in a process of their own; return the peaks in megabytes."""
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = Folder(
            Path(scratch) / "project",
            pipelines={"works": works_pipeline("works")},
            spark={"master": "local[2]", "driver_memory": HEAP},
        )
        start = 0
        for version in range(2):
            spark = folder.open().engine.spark
            write_works(spark, folder.path / "landing" / "works", start, rows, version)
            spark.stop()
            ran = subprocess.run(
                [sys.executable, __file__, "--run", str(folder.path)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            start = rows // 2
    python, java = ran.stdout.split()[-2:]
    return {"Python": int(python), "Java": int(java)}


def measured_run(folder: Path) -> None:
    """Run the pipeline and print the peaks of this process and of its Java, in megabytes."""
    project = esker.open(folder)
    project.run("works")
    gateway: Any = project.engine.spark.sparkContext._gateway
    print(peak("self"), peak(gateway.proc.pid))


def peak(process: int | str) -> int:
    """Return the most memory that a process ever held, in megabytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError(f"process {process} tells no peak")


if __name__ == "__main__":
    main()
