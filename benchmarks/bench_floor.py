"""What does the smallest batch cost, beside PyIceberg's `upsert` of the same rows?

Two small tables with the same rows on one local disk, one of Esker's and one of PyIceberg's; warm loads of
few rows, half of them known, handed over as Arrow to both, one after the other in every round. Esker's
`project.load` does more: newest version wins, change log, ledger; once with columns that are required, once
with a contract, whose rules are checked and counted in a quality history. The figures that count are the
ratios; seconds depend on the machine.

    python benchmarks/bench_floor.py [--rows N] [--sizes 1,10,100] [--rounds N] [--calls]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from benchmarks.upserts import pyiceberg_catalog
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.contracts.folder import FILE
from tests.contracts.narrow import NARROW
from tests.folder import Folder
from tests.java_calls import asked

MOST = {1: 1.2}
"""How many times as long as PyIceberg a load may take, by rows."""
COLUMNS = {
    "id": {"type": "bigint", "required": True},
    "name": {"type": "string", "required": True},
    "version": {"type": "bigint", "required": True},
}
ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())])
WARMING = 30
"""Loads before the first that counts: Java compiles what it runs often."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--sizes", default="1,10,100")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", action="store_true", help="print what is asked of Java, too")
    arguments = parser.parse_args()
    wanted = Wanted()
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        Bench(Path(scratch) / "warming", arguments.rows).compare(1, WARMING)
        print(f"warm loads into {arguments.rows:,} rows, {arguments.rounds} rounds, medians:", flush=True)
        for size in (int(text) for text in arguments.sizes.split(",")):
            # Tables of their own: both kinds get slower the more small files a table has.
            bench = Bench(Path(scratch) / str(size), arguments.rows)
            bench.compare(size, 2)
            bench.report(size, arguments.rounds, wanted)
            if arguments.calls:
                bench.report_calls()
    wanted.end()


class Bench:
    """Small tables with the same rows, and ways to upsert into them."""

    def __init__(self, scratch: Path, rows: int) -> None:
        keys: dict[str, Any] = {"mode": "upsert", "key": ["id"], "order_by": "version"}
        pipelines = {
            "plain": Folder.files_pipeline("none/*", "parquet", "db.plain", columns=COLUMNS, **keys),
            "agreed": Folder.files_pipeline("none/*", "parquet", "db.agreed", contract=FILE, **keys),
        }
        spark = {"master": "local[2]", "driver_memory": "2g"}
        folder = Folder(scratch / "project", pipelines=pipelines, spark=spark)
        folder.write(FILE, NARROW)
        self.project: OpenProject = folder.open()
        self.rows, self._version, self._random = rows, 0, random.Random(7)
        self.pyiceberg = _pyiceberg(scratch)
        first = self._batch(range(rows))
        for name in pipelines:
            self.project.load(name, first)
        self.pyiceberg.append(first.cast(self.pyiceberg.schema().as_arrow()))

    def compare(self, size: int, rounds: int) -> dict[str, list[float]]:
        """Load batches of so many rows in all ways; return the seconds of each."""
        ways: dict[str, Callable[[pa.Table], Any]] = {
            "required columns": lambda rows: self.project.load("plain", rows),
            "contract": lambda rows: self.project.load("agreed", rows),
            "PyIceberg": self._upsert,
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            rows = self._next(size)
            for name, load in ways.items():
                started = time.perf_counter()
                load(rows)
                taken[name].append(time.perf_counter() - started)
        return taken

    def report(self, size: int, rounds: int, wanted: Wanted) -> None:
        """Measure one size and print the ratios."""
        taken = self.compare(size, rounds)
        medians = {name: statistics.median(values) for name, values in taken.items()}
        told = []
        for name in ("required columns", "contract"):
            ratio, most = medians[name] / medians["PyIceberg"], MOST.get(size)
            is_wanted = most is not None and name == "required columns"
            what = f"a load of {size} row beside PyIceberg"
            goal = f" ({wanted.at_most(what, ratio, most)})" if is_wanted and most is not None else ""
            told.append(f"{name} {ratio:.2f}{goal}")
        seconds = ", ".join(f"{name} {value:.3f} s" for name, value in medians.items())
        print(f"  {size:>5,} rows: times as long as PyIceberg: {'; '.join(told)}   [{seconds}]", flush=True)

    def report_calls(self) -> None:
        """Print what one more load of one row asks of Java."""
        for name in ("plain", "agreed"):
            with asked(self.project) as found:
                self.project.load(name, self._next(1))
            print(f"  {name}: {len(found.calls)} calls, {found.jobs} jobs, {found.transactions} transactions")
            for call, times in found.by_name.most_common():
                print(f"    {times:>4} {call}")

    def _upsert(self, rows: pa.Table) -> None:
        self.pyiceberg.upsert(rows.cast(self.pyiceberg.schema().as_arrow()), join_cols=["id"])

    def _next(self, size: int) -> pa.Table:
        """Return a batch of known and new keys, newer than all before it."""
        known = self._random.sample(range(self.rows), size - size // 2)
        new = range(self.rows, self.rows + size // 2)
        self.rows += len(new)
        return self._batch([*known, *new])

    def _batch(self, keys: Any) -> pa.Table:
        self._version += 1
        values = [{"id": k, "name": f"row {k + self._version}", "version": self._version} for k in keys]
        return pa.Table.from_pylist(values, ROWS)


def _pyiceberg(scratch: Path) -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    scratch.mkdir(parents=True, exist_ok=True)
    catalog = pyiceberg_catalog(scratch)
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "name", StringType(), required=True),
        NestedField(3, "version", LongType(), required=True),
        identifier_field_ids=[1],
    )
    return catalog.create_table("db.plain", schema)


if __name__ == "__main__":
    main()
