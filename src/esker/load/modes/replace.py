"""Replace: the rows of a batch take the place of what the table, or their partitions, hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import from_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.in_partitions import StagedPartitions
from esker.errors import PartitionsMixed
from esker.load.batch import Batch, Loading, StagedRows, stage_rows
from esker.load.counts import RowCounts
from esker.load.guards import Guards
from esker.load.places import placed_rows, positions
from esker.load.publish import Change, Made

_SWAPPED = "_esker_swapped"


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
        if self.of_partitions and self.files.rows:
            partitions = StagedPartitions(self.loading.engine, self.files)
            if any(file.spec_id != partitions.spec_id for file in attempt.files.data):
                return self._across_specs(attempt, partitions, changeset)
        return self.made(self._commit, changeset)

    def _across_specs(self, attempt: Attempt, partitions: StagedPartitions, changeset: int) -> Made:
        """Swap partitions although rows of them lie in files of other specs.

        A file whose rows all belong to the swapped partitions goes; of one that holds others, too, the rows
        at their positions.
        """
        of_spec = [file for file in attempt.files.data if file.spec_id == partitions.spec_id]
        gone = [file for file in of_spec if partitions.hold(file)]
        others = {file.path: file for file in attempt.files.data if file.spec_id != partitions.spec_id}
        engine, table = self.loading.engine, self.files.table
        with explained("cannot find the rows of the partitions", engine.log):
            rows = self._of_files(placed_rows(engine, table, attempt), list(others))
            found = partitions.mark(rows, _SWAPPED)
            swapped = F.count(F.when(F.col(_SWAPPED), 1))
            counts = found.groupBy("_file").agg(F.count(F.lit(1)).alias("live"), swapped.alias("swapped"))
            counted = counts.where("swapped > 0").collect()
            gone += [others[row["_file"]] for row in counted if row["swapped"] == row["live"]]
            mixed = [row["_file"] for row in counted if row["swapped"] < row["live"]]
            if mixed and attempt.format_version < 2:
                raise PartitionsMixed(str(table))
            within = self._of_files(found.where(_SWAPPED), mixed)
            doomed = positions(attempt, within, "_file", "_pos") if mixed else {}
        deletes = attempt.delete(doomed)

        def commit(attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
            return attempt.swap_files(self.files, gone, deletes, summary)

        return self.made(commit, changeset)

    def _of_files(self, rows: DataFrame, paths: list[str]) -> DataFrame:
        """Return those of a table's rows that lie in some files."""
        named = from_arrow(self.loading.engine.spark, pa.table({"_file": pa.array(paths, pa.string())}))
        return rows.join(F.broadcast(named), "_file", "left_semi")

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        if self.of_partitions and not self.files.rows:
            return attempt.touch(summary)
        if self.of_partitions:
            return attempt.replace_partitions(self.files, summary)
        return attempt.replace(self.files, summary)
