"""Compare the old store with the table that takes its place: every record, every value.

`compare.py [FOLDER]` compares those of a project, says what differs, and ends with status 1 if anything does.
The old store's address is STORE_ENDPOINT, in the environment or in the project's .env.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.append(str(HERE / "sources"))

import pyarrow as pa
import pyarrow.parquet as pq
from dotenv import dotenv_values
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from versioned_store import VersionedStore

import esker
from esker.pipeline.api import OpenProject

TABLE = "catalogue.records"
_VALUES = ("version", "changed_at", "title", "creators", "note")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("version", pa.int64()),
        ("changed_at", pa.timestamp("us", tz="UTC")),
        ("title", pa.string()),
        ("creators", pa.list_(pa.string())),
        ("note", pa.string()),
    ]
)
_KINDS = ("missing", "extra", "different")
_SHOWN = 5


@dataclass(frozen=True)
class Found:
    """Some records."""

    count: int
    ids: tuple[str, ...]
    """The first of them."""

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.ids) else ""
        return f"{self.count}: {', '.join(self.ids)}{more}" if self.count else "0"


@dataclass(frozen=True)
class Comparison:
    """How store and table differ. What is deleted counts as not there."""

    records: int
    """In the store."""
    missing: Found
    """In the store only."""
    extra: Found
    """In the table only."""
    different: Found
    """In both, with other values."""

    @property
    def is_equal(self) -> bool:
        return not (self.missing.count or self.extra.count or self.different.count)

    def __str__(self) -> str:
        if self.is_equal:
            return f"{self.records} records are the same in both"
        return (
            f"of {self.records} records, missing in the table {self.missing}; "
            f"in the table only {self.extra}; different {self.different}"
        )


def compare(project: OpenProject, store: VersionedStore) -> Comparison:
    """Compare all records. They pass through a file: memory stays flat, however many there are."""
    table = project.table(TABLE).where("NOT coalesce(deleted, false)").select("id", *_VALUES)
    with TemporaryDirectory(prefix="esker-compare-") as folder:
        file = Path(folder) / "store.parquet"
        records = _write(store, file)
        old = project.engine.spark.read.parquet(str(file))
        both = old.alias("old").join(table.alias("new"), "id", "full")
        is_same = F.lit(True)
        for name in _VALUES:
            is_same &= F.col(f"old.{name}").eqNullSafe(F.col(f"new.{name}"))
        kind = (
            F.when(F.col("new.version").isNull(), "missing")
            .when(F.col("old.version").isNull(), "extra")
            .when(~is_same, "different")
        )
        found = both.select("id", kind.alias("kind")).where("kind IS NOT NULL")
        counts = {row.kind: row["count"] for row in found.groupBy("kind").count().collect()}
        return Comparison(records, *(_found(found, kind, counts) for kind in _KINDS))


def _write(store: VersionedStore, file: Path) -> int:
    written = 0
    with pq.ParquetWriter(file, _SCHEMA) as writer, ThreadPoolExecutor(8) as pool:
        for page in store.entries():
            live = [entry for entry in page if entry.key is not None]
            rows = [row for row in pool.map(store.read, live) if not row["deleted"]]
            writer.write_table(pa.Table.from_pylist([_chosen(row) for row in rows], _SCHEMA))
            written += len(rows)
    return written


def _chosen(row: dict[str, object]) -> dict[str, object]:
    return {name: row.get(name) for name in _SCHEMA.names}


def _found(rows: DataFrame, kind: str, counts: Mapping[str, int]) -> Found:
    if kind not in counts:
        return Found(0, ())
    first = rows.where(F.col("kind") == kind).orderBy("id").limit(_SHOWN).collect()
    return Found(counts[kind], tuple(row.id for row in first))


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/store_migration"
    settings = {**dotenv_values(folder / ".env")}
    endpoint = settings.get("STORE_ENDPOINT")
    if not endpoint:
        raise SystemExit(f"{folder} does not say where the old store is: STORE_ENDPOINT in its .env")
    store = VersionedStore.connect(endpoint, "records", "records-index")
    try:
        comparison = compare(esker.open(folder), store)
    finally:
        store.close()
    print(comparison)
    return 0 if comparison.is_equal else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
