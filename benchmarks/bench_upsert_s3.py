"""How fast are upserts on an object store behind a REST catalog, beside PyIceberg's `upsert`?

Two tables of 300,000 rows on one SeaweedFS; batches of half known and half new keys, handed over as
Arrow to both, one after the other in every round. Esker's `project.load` does more: newest version wins,
changed rows only, change log, ledger. The figures that count are the ratios; seconds depend on the
machine. SeaweedFS is installed by `make servers`.

    python benchmarks/bench_upsert_s3.py [--rows N] [--sizes 1,100,10000] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.upserts import Batches, PyIceberg, Targets, Way, compare
from benchmarks.wanted import Wanted
from tests.folder import Folder
from tests.servers.seaweedfs import SeaweedFS, program, running_seaweedfs

TARGETS: Targets = {"PyIceberg": {1: 2.5, 100: 2.5, 10_000: 4}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--sizes", default="1,100,10000")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    wanted = Wanted()
    if program() is None:
        sys.exit("upserts on S3: not measured, SeaweedFS is missing (make servers)")
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch, running_seaweedfs() as seaweedfs:
        os.environ.update(seaweedfs.environment)
        bench = Bench(Path(scratch), seaweedfs, arguments.rows)
        bench.fill()
        print(f"upserts into {arguments.rows:,} rows on S3 and REST, {arguments.rounds} rounds, medians:")
        for size in (int(text) for text in arguments.sizes.split(",")):
            compare(bench.ways, bench.batches, size, arguments.rounds, TARGETS, wanted)
        bench.check()
    wanted.end()


class Bench:
    """Two tables with the same rows, and two ways to upsert into them."""

    def __init__(self, scratch: Path, seaweedfs: SeaweedFS, rows: int) -> None:
        pipeline = Folder.files_pipeline(
            "landing/*.parquet", "parquet", "db.works", mode="upsert", key=["id"], order_by="last_modified"
        )
        folder = Folder(
            scratch / "project",
            catalog=seaweedfs.catalog(seaweedfs.new_warehouse()),
            store=seaweedfs.store(),
            pipelines={"works": pipeline},
            spark={"master": "local[2]", "driver_memory": "4g"},
        )
        self.batches = Batches(rows)
        self.project = folder.open()
        self.pyiceberg = PyIceberg(seaweedfs.pyiceberg(seaweedfs.new_warehouse()), "db.works")
        self.ways: dict[str, Way] = {
            "Esker": lambda rows: self.project.load("works", rows),
            "PyIceberg": self.pyiceberg.upsert,
        }

    def fill(self) -> None:
        """Give both tables the same rows."""
        for rows in self.batches.first():
            self.project.load("works", rows)
            self.pyiceberg.append(rows)

    def check(self) -> None:
        """See that both tables hold the same rows: every batch is newer than those before it."""
        columns = ["id", "content", "last_modified", "deleted"]
        ours = self.project.table("db.works").select(*columns).toArrow().sort_by("id")
        theirs = self.pyiceberg.table.refresh().scan().to_arrow().select(columns).sort_by("id")
        assert ours.num_rows == theirs.num_rows
        assert ours.column("content").to_pylist() == theirs.column("content").to_pylist()
        print(f"  both tables hold the same {ours.num_rows:,} rows")


if __name__ == "__main__":
    main()
