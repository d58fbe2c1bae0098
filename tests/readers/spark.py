"""Spark, in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import esker
from esker.engine.compat import to_arrow
from esker.project.types import columns_from_json
from tests.readers.seen import Reader, Seen, seen


@dataclass(frozen=True)
class SparkReader:
    spark: Any
    catalog: str

    def see(self, table: str, snapshot: int | None = None) -> Seen:
        at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        frame = self.spark.sql(f"SELECT * FROM {self.catalog}.{table}{at}")
        # Spark's own rows have times in the zone of this machine, without saying so.
        rows = to_arrow(frame).to_pylist()
        return seen(columns_from_json(frame.schema.jsonValue()), [tuple(row.values()) for row in rows])

    def history(self, table: str) -> list[int]:
        rows = self.spark.sql(
            f"SELECT snapshot_id FROM {self.catalog}.{table}.snapshots ORDER BY committed_at"
        ).collect()
        return [row.snapshot_id for row in rows]


@contextmanager
def opened(project: Path) -> Iterator[Reader]:
    """Open the catalog of a project."""
    found = esker.open(project)
    yield SparkReader(found.engine.spark, found.project.catalog_name(None))
