"""What does it cost to read what changed, and does it grow with the table?

A changeset of one row is read from the change log of a table on a local disk, without Spark, beside the
query for rows that were modified since, `last_modified > …`, with Spark and with PyIceberg. The table is
partitioned by day, so that the query opens the files of one day only; it sees neither deletes nor what a row
was before. Then the changes of the last batches are read by time, from a small and from a large table of the
same kind. The figures that count are the ratios.

    python benchmarks/bench_changes.py [--rows N] [--small N] [--large N] [--batches N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyiceberg.catalog import load_catalog

from benchmarks.upserts import DAYS, START, Batches, fill_by_run, works_pipeline
from benchmarks.wanted import Wanted
from esker.pipeline.api import OpenProject
from tests.folder import Folder

FASTER = {"Spark": 5, "PyIceberg": 1}
"""How many times as long a query by time should take, at least."""
GROWS = 1.3
"""How many times as long a large table may take, at most."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_700_000)
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    goals = Wanted()
    one_changeset(arguments.rows, arguments.rounds, goals)
    last_batches(arguments.small, arguments.large, arguments.batches, arguments.rounds, goals)
    goals.end()


def one_changeset(rows: int, rounds: int, goals: Wanted) -> None:
    """Compare reading one changeset with a query for rows that were modified since."""
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = _folder(Path(scratch), "works", partition_by=["day(last_modified)"])
        project = folder.open()
        fill_by_run(folder, "works", rows)
        batches = Batches(rows)
        moment = START + timedelta(days=DAYS)
        project.load("works", batches.next(1))

        def changes() -> int:
            return int(project.changes("db.works", since=1).to_arrow().num_rows)

        def spark() -> int:
            found = project.engine.spark.sql(
                f"SELECT * FROM lake.db.works WHERE last_modified > timestamp'{moment.isoformat()}'"
            )
            return len(found.collect())

        def pyiceberg() -> int:
            return _modified_since(folder, moment)

        medians = _medians({"changes": changes, "Spark": spark, "PyIceberg": pyiceberg}, rounds)
        print(
            f"one changeset of 1 row of a table of {rows:,}, beside a query by time on the table, medians of "
            f"{rounds} rounds:"
        )
        for name, least in FASTER.items():
            ratio = medians[name] / medians["changes"]
            goal = goals.at_least(f"a query with {name} beside a changeset", ratio, least)
            print(
                f"  {name:9} takes {ratio:7.1f} times as long ({goal})"
                f"   [{medians['changes']:.3f} s, {medians[name]:.3f} s]",
                flush=True,
            )


def last_batches(small: int, large: int, batches: int, rounds: int, goals: Wanted) -> None:
    """Compare reading what came lately from a small table and from a large one."""
    tables = {"small": Batches(small), "large": Batches(large)}
    with tempfile.TemporaryDirectory(prefix="esker-bench-") as scratch:
        folder = _folder(Path(scratch), *tables)
        project = folder.open()
        for name, made in tables.items():
            fill_by_run(folder, name, made.rows)
        moment = datetime.now(UTC)
        for made, name in ((made, name) for _ in range(batches) for name, made in tables.items()):
            project.load(name, made.next(100))
        medians = _medians({name: _since(project, name, moment) for name in tables}, rounds)
        ratio = medians["large"] / medians["small"]
        print(
            f"the last {batches} changesets by time, of a table of {large:,} rows beside one of {small:,}, "
            f"medians of {rounds} rounds:\n"
            f"  {ratio:5.2f} times as long ({goals.at_most('the last changesets', ratio, GROWS)})"
            f"   [{medians['small']:.3f} s, {medians['large']:.3f} s]",
            flush=True,
        )


def _since(project: OpenProject, name: str, moment: datetime) -> Callable[[], int]:
    return lambda: int(project.changes(f"db.{name}", since=moment).to_arrow().num_rows)


def _folder(scratch: Path, *names: str, **keys: Any) -> Folder:
    return Folder(
        scratch / "project",
        pipelines={name: works_pipeline(name, **keys) for name in names},
        spark={"master": "local[2]", "driver_memory": "4g"},
    )


def _modified_since(folder: Folder, moment: datetime) -> int:
    """Return how many rows PyIceberg finds."""
    place = folder.path / ".esker"
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{place / 'catalog.db'}")
    scan = catalog.load_table("db.works").scan(f"last_modified > '{moment.isoformat()}'")
    return int(scan.to_arrow().num_rows)


def _medians(ways: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Time ways that find the same number of rows, one after the other in every round."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, read in ways.items():
            started = time.monotonic()
            found = read()
            elapsed = time.monotonic() - started
            assert found, f"{name} found nothing"
            if number:  # the first round warms up
                taken[name].append(elapsed)
    return {name: statistics.median(values) for name, values in taken.items()}


if __name__ == "__main__":
    main()
