"""Replace: the rows of a batch take the place of everything that the table holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.stage import StagedFiles
from esker.errors import EmptyReplacement
from esker.load.batch import Batch, Loading, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Replace:
    """Loads batches by swapping the whole table. Readers see the old rows or the new ones, never none."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        staged = stage_rows(self.loading, batch)
        if not staged.rows:
            raise EmptyReplacement(self.loading.name, str(self.loading.table))
        return Replacement(staged)


@dataclass(frozen=True)
class Replacement:
    """Staged rows that are to replace all others."""

    files: StagedFiles

    @property
    def columns(self) -> tuple[str, int]:
        return self.files.table_uuid, self.files.schema_id

    def first_attempt(self) -> Attempt | None:
        return None

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        counts = RowCounts(read=self.files.rows, inserted=self.files.rows)
        return Made(self._commit, counts, self.files.bytes)

    def release(self) -> None:
        pass

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.replace(self.files, summary)
