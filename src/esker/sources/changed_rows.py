"""The rows of a table by its change log: each that changed as it is now, or marked as deleted."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.rows import pinned_rows
from esker.engine.iceberg.table import Table
from esker.engine.session import Engine
from esker.errors import NoChangeLog
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.ledger.change_range import change_log_of, changes_frame
from esker.project import Pipeline
from esker.project.reserved import is_own
from esker.project.types import quoted


@dataclass(frozen=True)
class ChangedRows:
    """Reads a table that a pipeline with a key writes."""

    engine: Engine
    table: Table
    mark: str
    """The column that says of a row that it was deleted."""
    where: str | None = None
    """Rows for which this is not true count as deleted."""

    def reached(self) -> int:
        """Return the changeset of the table's snapshot. Raises NoChangeLog."""
        attempt = Attempt(self.engine, self.table.id)
        change_log_of(attempt, self.table.id)
        assert self.table.snapshot is not None
        found = attempt.summary_at(self.table.snapshot.id, "esker.changeset")
        if found is None:
            raise NoChangeLog(str(self.table.id), "none of its snapshots has a changeset")
        return int(found)

    def all(self) -> DataFrame:
        """Return all rows that are there."""
        rows = pinned_rows(self.engine, self.table)
        if self._own_mark in rows.columns:
            rows = rows.where(~F.coalesce(F.col(quoted(self._own_mark)), F.lit(False)))
        rows = rows.where(self.where) if self.where is not None else rows
        return rows.select(*self._names(rows), F.lit(False).alias(self.mark))

    def since(self, changeset: int) -> tuple[DataFrame, int]:
        """Return what changed after a changeset, each row once, and the last changeset.

        Raises NoChangeLog or ChangesForgotten.
        """
        log, _, last = changes_frame(self.engine, self.table.id, changeset, None)
        key = Window.partitionBy(*(quoted(name) for name in self._key()))
        newest = F.row_number().over(key.orderBy(F.col(CHANGESET).desc(), F.col(ROW).desc()))
        rows = log.withColumn("_esker_newest", newest).where("_esker_newest = 1")
        is_gone = F.col(OP) == "delete"
        if self.where is not None:
            # What does not belong here any more is gone, too.
            is_gone = is_gone | ~F.coalesce(F.expr(f"({self.where}\n)"), F.lit(False))
        return rows.select(*self._names(log), is_gone.alias(self.mark)), last

    def _names(self, rows: DataFrame) -> list[str]:
        marks = (self.mark.lower(), self._own_mark.lower())
        return [quoted(name) for name in rows.columns if not is_own(name) and name.lower() not in marks]

    def _key(self) -> tuple[str, ...]:
        if self.table.identifier:
            return self.table.identifier
        if self._pipeline is None:
            raise NoChangeLog(str(self.table.id), "it says nowhere which columns identify a row")
        return tuple(self._pipeline.key)

    @property
    def _own_mark(self) -> str:
        """The column by which the table marks deleted rows."""
        return self._pipeline.deleted_column if self._pipeline is not None else self.mark

    @property
    def _pipeline(self) -> Pipeline | None:
        """The pipeline that writes the table, if it is one of the project's."""
        pipelines = self.engine.project.pipelines.values()
        return next((each for each in pipelines if each.table == self.table.id.name), None)
