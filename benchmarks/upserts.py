"""What benchmarks of upserts share: rows, batches, and ways to load them that are timed side by side."""

from __future__ import annotations

import hashlib
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.wanted import Wanted
from tests.folder import Folder

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 100
"""Over how many days the rows that Spark fills a table with were modified; batches are newer."""
PART = 100_000
"""Rows by which tables are filled."""

Way = Callable[[pa.Table], Any]
Targets = Mapping[str, Mapping[int, float]]
"""How many times as long as Esker others should take at least, by batch size."""


def pyiceberg_catalog(scratch: Path) -> Any:
    """Return an empty catalog of PyIceberg's own in a folder, as its users have one on a laptop."""
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("bench", uri=f"sqlite:///{scratch}/py.db", warehouse=f"file://{scratch}/py")


class Batches:
    """Batches for a table of so many rows: half known keys, half new ones."""

    def __init__(self, rows: int) -> None:
        self.rows, self._next_key, self._version = rows, rows, 0
        self._random = random.Random(7)

    def first(self) -> Iterable[pa.Table]:
        """Return the rows that the table begins with, in parts."""
        for start in range(0, self.rows, PART):
            yield batch(range(start, min(self.rows, start + PART)), version=0, modified=START)

    def next(self, size: int) -> pa.Table:
        """Return a batch that is newer than all before it."""
        known = self._random.sample(range(self.rows), min(self.rows, size - size // 2))
        new = range(self._next_key, self._next_key + size - len(known))
        self._next_key += len(new)
        self._version += 1
        modified = START + timedelta(days=DAYS, seconds=self._version)
        return batch([*known, *new], version=self._version, modified=modified)


def compare(
    ways: Mapping[str, Way],
    batches: Batches,
    size: int,
    rounds: int,
    targets: Targets,
    wanted: Wanted,
    skips: Callable[[str, int], bool] = lambda name, number: False,
) -> None:
    """Time the ways with equal batches, one after the other in every round, and print the ratios.

    The first way is the one that the others are compared with. The first round warms up; it counts only
    for a way that `skips` leaves with no other.
    """
    first, *others = ways
    warming: dict[str, float] = {}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        rows = batches.next(size)
        for name, upsert in ways.items():
            if skips(name, number):
                continue
            started = time.monotonic()
            upsert(rows)
            elapsed = time.monotonic() - started
            if number:
                taken[name].append(elapsed)
            else:
                warming[name] = elapsed
    medians = {
        name: statistics.median(values or [warming[name]])
        for name, values in taken.items()
        if values or name in warming
    }
    told = []
    for name in others:
        if name in medians:
            ratio, least = medians[name] / medians[first], targets.get(name, {}).get(size)
            what = f"{name} beside {first}, {size:,} rows"
            goal = f" ({wanted.at_least(what, ratio, least)})" if least is not None else ""
            told.append(f"{ratio:5.1f} x {name}{goal}")
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in medians.items())
    print(f"  {size:>9,} rows: {'; '.join(told)}   [{seconds}]", flush=True)


def batch(keys: Iterable[int], *, version: int, modified: datetime) -> pa.Table:
    """Return rows of about a kilobyte."""
    keys = list(keys)
    pad = {key: hashlib.sha512(b"%d %d" % (key, version)).hexdigest() * 8 for key in keys}
    return pa.table(
        {
            "id": [f"work/{hashlib.md5(b'%d' % key).hexdigest()[:16]}" for key in keys],
            "content": [f'{{"key": {key}, "version": {version}, "text": "{pad[key]}"}}' for key in keys],
            "last_modified": pa.array([modified] * len(keys), pa.timestamp("us", tz="UTC")),
            "deleted": pa.array([False] * len(keys)),
        }
    )


def works_pipeline(name: str, **keys: Any) -> dict[str, Any]:
    """Return a pipeline that upserts such rows into the table `db.<name>`."""
    return Folder.files_pipeline(
        f"landing/{name}/*/*.parquet",
        "parquet",
        f"db.{name}",
        mode="upsert",
        key=["id"],
        order_by="last_modified",
        **keys,
    )


def write_works(spark: SparkSession, folder: Path, first: int, rows: int, version: int = 0) -> None:
    """Write rows like those of `batch`, any number of them, as Parquet files into a new folder below."""
    key = F.col("id").cast("string")
    spread = (
        F.col("id") * F.lit(DAYS * 86_400 / (first + rows))
        if version == 0
        else F.lit(DAYS * 86_400 + version)
    )
    pad = F.repeat(F.sha2(F.concat(key, F.lit(f" {version}")), 512), 8)
    spark.range(first, first + rows).select(
        F.concat(F.lit("work/"), F.substring(F.md5(key), 1, 16)).alias("id"),
        F.concat(F.lit('{"key": '), key, F.lit(f', "version": {version}, "text": "'), pad, F.lit('"}')).alias(
            "content"
        ),
        (F.lit(START) + F.make_interval(secs=spread)).alias("last_modified"),
        F.lit(False).alias("deleted"),
    ).write.parquet(str(folder / str(version)))


def fill_by_run(folder: Folder, name: str, rows: int) -> None:
    """Give the table of a `works_pipeline` its first rows."""
    project = folder.open()
    write_works(project.engine.spark, folder.path / "landing" / name, 0, rows)
    project.run(name)


class PyIceberg:
    """PyIceberg's table with the same rows, and its `upsert`."""

    def __init__(self, catalog: Any, name: str, buckets: int = 0) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import BucketTransform
        from pyiceberg.types import BooleanType, NestedField, StringType, TimestamptzType

        catalog.create_namespace_if_not_exists(name.partition(".")[0])
        schema = Schema(
            NestedField(1, "id", StringType(), required=True),
            NestedField(2, "content", StringType(), required=False),
            NestedField(3, "last_modified", TimestamptzType(), required=False),
            NestedField(4, "deleted", BooleanType(), required=False),
            identifier_field_ids=[1],
        )
        spec = PartitionSpec()
        if buckets:
            field = PartitionField(
                source_id=1, field_id=1000, transform=BucketTransform(buckets), name="id_bucket"
            )
            spec = PartitionSpec(field)
        self.table = catalog.create_table(name, schema, partition_spec=spec)

    def append(self, rows: pa.Table) -> None:
        """Add rows."""
        self.table.append(rows.cast(self.table.schema().as_arrow()))

    def upsert(self, rows: pa.Table) -> None:
        """Replace rows of known keys, and add the others."""
        self.table.upsert(rows.cast(self.table.schema().as_arrow()), join_cols=["id"])
