"""Replace: the rows of a batch take the place of what the table, or their partitions, hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.errors import Held, PartitionsMixed
from esker.load.batch import Batch, Loading, StagedRows, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Replace:
    """Loads batches by swapping. Readers see the old rows or the new ones, never none."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        of_partitions = self.loading.pipeline.mode == "replace_partitions"
        if not staged.rows and not of_partitions:
            self._check_emptying()
        return Replacement(staged, of_partitions)

    def _check_emptying(self) -> None:
        """Raise Held when a source without rows would empty the table."""
        loading = self.loading
        attempt = Attempt(loading.engine, loading.table)
        live = sum(file.records for file in attempt.files.data)
        if live > loading.approved:
            why = "The source holds no row at all. Mostly that is a mistake in the source."
            raise Held(loading.name, str(loading.table), live, live, why)


@dataclass(frozen=True)
class Replacement(StagedRows):
    """Staged rows that are to replace others."""

    of_partitions: bool

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        if not self.files.rows and (self.of_partitions or not attempt.files.data):
            return self.counts
        if self.of_partitions and any(file.spec_id != attempt.spec_id for file in attempt.files.data):
            # Rows of the same partition lie in files of another partitioning: they would stay.
            raise PartitionsMixed(str(self.files.table))
        return Made(self._commit, self.counts, self.files.bytes)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        if self.of_partitions:
            return attempt.replace_partitions(self.files, summary)
        return attempt.replace(self.files, summary)
