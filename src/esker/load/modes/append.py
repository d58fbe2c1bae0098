"""Append: every row of a batch is added, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.ledger.side_table import QUARANTINE, Stamp
from esker.load.batch import Batch, Loading, StagedRows, check_staged, discarded_rows, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Append:
    """Loads batches by adding their rows."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        check_staged(self.loading, staged, lambda: batch.guards.check(staged.rows, 0, lambda: 0))
        with explained("cannot read the rows", self.loading.engine.log, reads_source=True):
            return Appended(staged, self.loading, batch.slice, discarded_rows(batch))


@dataclass(frozen=True)
class Appended(StagedRows):
    """Staged rows that are to be added."""

    loading: Loading
    slice: str
    discarded: DataFrame | None
    """Rows for the quarantine."""

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        if self.discarded is None:
            return Made(self._commit, self.counts, self.files.bytes) if self.files.rows else self.counts
        assert self.loading.quarantine is not None
        quarantine = self.loading.quarantine()
        stamp = Stamp(self.loading.name, self.loading.run, self.slice, changeset, datetime.now(UTC))
        staged = quarantine.stage(self.discarded, stamp)
        owed = {QUARANTINE: quarantine.side.listed(quarantine.opened.store, changeset, staged)}
        counts = self.counts + RowCounts(read=staged.rows, quarantined=staged.rows)
        return Made(self._commit, counts, self.files.bytes, owed)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.append(self.files, summary)
