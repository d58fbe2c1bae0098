"""Replace: the rows of a batch take the place of what the table, or their partitions, hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.errors import PartitionsMixed
from esker.load.batch import Batch, Loading, StagedRows, stage_rows
from esker.load.counts import RowCounts
from esker.load.guards import Guards
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Replace:
    """Loads batches by swapping. Readers see the old rows or the new ones, never none."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        of_partitions = self.loading.pipeline.mode == "replace_partitions"
        change = Replacement(staged, self.loading, batch.slice, of_partitions, batch.guards)
        # Once before anything else is done, and then against the table of each attempt.
        attempt = Attempt(self.loading.engine, self.loading.table)
        staged.check(self.loading, lambda: change.check(attempt))
        return change


@dataclass(frozen=True)
class Replacement(StagedRows):
    """Staged rows that are to replace others."""

    of_partitions: bool
    guards: Guards

    def check(self, attempt: Attempt) -> None:
        """Raise Held when the table must not be replaced unseen."""
        is_guarded = self.guards.pipeline.guard.max_delete is not None
        lost = attempt.files.rows - self.files.rows if is_guarded and not self.of_partitions else 0
        self.guards.check(self.files.rows, max(lost, 0), lambda: attempt.files.rows, self.staged.tally)

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        self.check(attempt)
        is_nothing = not self.files.rows and self.staged.rejected is None
        if is_nothing and (self.of_partitions or not attempt.files.data):
            return RowCounts()
        if self.of_partitions and any(file.spec_id != attempt.spec_id for file in attempt.files.data):
            # Rows of the same partition lie in files of another partitioning: they would stay.
            raise PartitionsMixed(str(self.files.table))
        return self.made(self._commit, changeset)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        if self.of_partitions and not self.files.rows:
            return attempt.touch(summary)
        if self.of_partitions:
            return attempt.replace_partitions(self.files, summary)
        return attempt.replace(self.files, summary)
