"""Append: every row of a batch is added, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.load.batch import Batch, Loading, StagedRows, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Append:
    """Loads batches by adding their rows."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        rows = staged.tally.rows
        staged.check(self.loading, lambda: batch.guards.check(rows, 0, lambda: 0, staged.tally))
        return Appended(staged, self.loading, batch.slice)


@dataclass(frozen=True)
class Appended(StagedRows):
    """Staged rows that are to be added."""

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        if not self.files.rows and self.staged.rejected is None and self.loading.resolved is None:
            return RowCounts()
        return self.made(self._commit, changeset)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        if not self.files.rows:
            return attempt.touch(summary)
        return attempt.append(self.files, summary)
