"""Append: every row of a batch is added, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.stage import StagedFiles
from esker.load.batch import Batch, Loading, stage_rows
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Append:
    """Loads batches by adding their rows."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        return Appended(stage_rows(self.loading, batch))


@dataclass(frozen=True)
class Appended:
    """Staged rows that are to be added."""

    files: StagedFiles

    @property
    def columns(self) -> tuple[str, int]:
        return self.files.table_uuid, self.files.schema_id

    def first_attempt(self) -> Attempt | None:
        return None

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        counts = RowCounts(read=self.files.rows, inserted=self.files.rows)
        return Made(self._commit, counts, self.files.bytes) if self.files.rows else counts

    def release(self) -> None:
        pass

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.append(self.files, summary)
