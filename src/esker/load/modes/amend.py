"""Amend: a statement changes rows of a table that has no key, where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import let_go
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.statement import FILE, POSITION
from esker.errors import EskerError, TableMoved
from esker.load.batch import Batch, Loading, stage_rows
from esker.load.counts import RowCounts
from esker.load.places import positions
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Amend:
    """Loads the rows of statements."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        assert batch.command is not None
        with explained("the statement failed", self.loading.engine.log):
            # Found once: a condition with rand() would choose other rows to remove than to write.
            rows = batch.frame().localCheckpoint(eager=True)
            written = rows.where(~F.col(batch.command.mark))
            places = rows.where(F.col(FILE).isNotNull()).select(FILE, POSITION)
            updated = written.where(F.col(FILE).isNotNull()).count()
        try:
            if Attempt(self.loading.engine, self.loading.table).current != batch.command.base:
                # Nothing is staged yet that would be left behind.
                raise TableMoved(self.loading.name)
            staged = stage_rows(self.loading, replace(batch, frame=lambda: written)).files
        except EskerError:
            let_go(rows)
            raise
        return Amendment(staged, rows, places, updated, batch.command.base, self.loading)


@dataclass(frozen=True)
class Amendment(Change):
    """Staged rows, and the places of those that go."""

    files: StagedFiles
    kept: DataFrame
    places: DataFrame
    updated: int
    base: SnapshotId | None
    """The snapshot that the places are of."""
    loading: Loading

    @property
    def columns(self) -> tuple[str, int]:
        return self.files.table_uuid, self.files.schema_id

    def release(self) -> None:
        let_go(self.kept)

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        if attempt.current != self.base:
            raise TableMoved(self.loading.name)
        with explained("cannot find the rows", self.loading.engine.log):
            doomed = positions(attempt, self.places, FILE, POSITION)
        counts = self._counts(sum(len(found) for found in doomed.values()))
        if not counts.read:
            return counts
        deletes = attempt.delete(doomed)

        def commit(attempt: Attempt, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
            if not doomed:
                return attempt.append(self.files, summary)
            return attempt.row_delta([self.files], deletes, doomed, summary)

        return Made(commit, counts, self.files.bytes + deletes.bytes)

    def _counts(self, removed: int) -> RowCounts:
        return RowCounts(
            read=self.files.rows + removed - self.updated,
            inserted=self.files.rows - self.updated,
            updated=self.updated,
            deleted=removed - self.updated,
        )
