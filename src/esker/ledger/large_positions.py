"""Positions that do not fit into the ledger: `<table>__positions`, a table beside the table.

A position is written here *before* the batch is published, and the ledger names it. One that no ledger
names belongs to a batch that was never published, and means nothing. Old ones are taken out, whole files at
a time, as each stands in its own.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as F

from esker.engine.compat import from_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.stage import stage
from esker.engine.iceberg.table import TABLE_DEFAULTS, TableId, exists
from esker.engine.session import Engine
from esker.errors import EskerError, PositionLost
from esker.ledger.append_once import append_once
from esker.ledger.upkeep import expire_old
from esker.project.types import Column, Plain

_COLUMNS = (
    Column("id", Plain("string"), required=True),
    Column("pipeline", Plain("string"), required=True),
    Column("run", Plain("string"), required=True),
    Column("written_at", Plain("timestamp"), required=True),
    Column("position", Plain("string"), required=True),
)


NAMED = 16
"""Characters of a name. Iceberg knows of each file which texts it holds, if they are not longer."""
_MANY = 50
"""From so many on, old ones are taken out."""
_KEPT = timedelta(days=7)
"""How long each is kept, for those who hold a batch or look at an earlier state."""


@dataclass(frozen=True)
class LargePositions:
    """The large positions of one pipeline."""

    engine: Engine
    table: TableId
    pipeline: str

    def record(self, name: str, position: str, run: str) -> None:
        """Write down a position. It counts once the ledger names it."""
        if not exists(self.engine, self.table):
            create(self.engine, NewTable(self.table, _COLUMNS, (), TABLE_DEFAULTS))
        row = {
            "id": [name],
            "pipeline": [self.pipeline],
            "run": [run],
            "written_at": pa.array([datetime.now(UTC)], pa.timestamp("us", tz="UTC")),
            "position": [position],
        }
        frame = from_arrow(self.engine.spark, pa.table(row)).coalesce(1)
        staged = stage(self.engine, self.table, frame, f"position-{uuid4()}")
        append_once(self.engine, staged, name, {"esker.pipeline": self.pipeline, "esker.run": run})

    def forget(self, published: str) -> None:
        """Take out what this pipeline no longer needs, if that is much, now that it published a position.

        Old ones go, but for the newest of them: the ledger named it until now, and names it again should
        the table go back. Whoever publishes meanwhile has a newer one. What cannot be taken out now is left
        for the next time.
        """
        with suppress(EskerError, SwapFailed):
            attempt = Attempt(self.engine, self.table)
            if len(attempt.files.data) < _MANY:
                return
            old = F.col("written_at") < F.lit(datetime.now(UTC) - _KEPT)
            with explained(f'cannot read table "{self.table}"', self.engine.log):
                rows = self.engine.spark.table(self.table.sql).where(
                    old & (F.col("pipeline") == self.pipeline) & (F.col("id") != published)
                )
                # Longer names, of earlier versions: Iceberg cannot tell by them what a file holds.
                rows = rows.where(F.length("id") <= NAMED).orderBy(F.col("written_at").desc())
                _, *names = [row[0] for row in rows.select("id").collect()] or [""]
            if names:
                attempt.remove_named("id", names, {"esker.pipeline": self.pipeline})
                attempt.swap()
                # Each stands in every metadata file that is written from now on.
                expire_old(self.engine, self.table)

    def read(self, name: str) -> str:
        """Return a position that the ledger names, or raise PositionLost."""
        if not exists(self.engine, self.table):
            raise PositionLost(str(self.table), name)
        with explained(f'cannot read table "{self.table}"', self.engine.log):
            rows = self.engine.spark.table(self.table.sql).where(F.col("id") == name)
            found = rows.select("position").first()
        if found is None:
            raise PositionLost(str(self.table), name)
        return str(found[0])
