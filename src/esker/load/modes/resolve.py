"""Resolve: rows of the quarantine are done with; the table itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from esker.engine.iceberg.commit import Attempt
from esker.ledger.quarantine import Quarantine
from esker.ledger.run_id import new_run_id
from esker.ledger.side_table import LOG, QUARANTINE, Files, Stamp
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Resolve(Change):
    """What became of rows, on its way into the quarantine."""

    table: tuple[str, int]
    quarantine: Quarantine
    resolved: DataFrame
    pipeline: str
    run: str

    @property
    def columns(self) -> tuple[str, int]:
        return self.table

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        stamp = Stamp(self.pipeline, self.run, new_run_id(), changeset, datetime.now(UTC))
        staged = self.quarantine.stage(self.resolved.coalesce(1), stamp)
        side = self.quarantine.side
        owed: dict[str, Files] = {QUARANTINE: side.listed(self.quarantine.opened.store, changeset, staged)}
        if LOG in attempt.properties:
            owed[LOG] = ()  # no change, and no gap
        return Made(self._commit, RowCounts(), 0, owed)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.touch(summary)
