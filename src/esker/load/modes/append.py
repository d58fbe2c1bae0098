"""Append: every row of a batch is added, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.load.batch import Batch, Loading, StagedRows, check_staged, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Append:
    """Loads batches by adding their rows."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        check_staged(self.loading, staged, lambda: batch.guards.check(staged.rows, 0, lambda: 0))
        return Appended(staged)


@dataclass(frozen=True)
class Appended(StagedRows):
    """Staged rows that are to be added."""

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        return Made(self._commit, self.counts, self.files.bytes) if self.files.rows else self.counts

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.append(self.files, summary)
