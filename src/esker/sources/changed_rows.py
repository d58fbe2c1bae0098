"""The rows of a table by its change log: each that changed as it is now, or marked as gone.

A table with one row per key tells all of it in its log. In modes `delete_insert` and `scd2` a key has several
rows, and the log does not say what became of each: rows that stay as they are have no change, and a version
ends without one. There the log tells which keys changed, and their rows are looked up in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.changes.since import LogPosition
from esker.changes.spark import SparkLog
from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.table import Table
from esker.engine.session import Engine
from esker.errors import NoChangeLog
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.ledger.live_rows import without_deleted
from esker.project import Pipeline
from esker.project.reserved import is_own
from esker.project.types import quoted
from esker.sources.copied_key import CopiedKey


@dataclass(frozen=True)
class Copied:
    """What a copy has to load."""

    rows: DataFrame
    """Rows with a mark of those that are gone."""
    here: DataFrame
    """Those that are there."""


@dataclass(frozen=True)
class ChangedRows:
    """Reads a table that a pipeline with a key writes, for another pipeline that copies it."""

    engine: Engine
    table: Table
    copy: Pipeline
    where: str | None = None
    """Rows for which this is not true are gone."""

    @cached_property
    def log(self) -> SparkLog:
        """The table with its change log. Raises NoChangeLog."""
        return SparkLog.open(self.engine, self.table.id)

    @property
    def reached(self) -> int:
        """The changeset of the rows that `all` returns."""
        return self.log.published

    def position(self) -> LogPosition:
        """Return the position of a reader that has read all rows that are there."""
        return self.log.position(self.reached)

    @cached_property
    def key(self) -> CopiedKey:
        """How the rows of the copy are found by what the log tells. Raises ChangesNotFollowed."""
        # What the writer goes by counts: the table may still say what it went by before.
        key = (self._pipeline.key if self._pipeline is not None else ()) or self.table.identifier
        if not key:
            raise NoChangeLog(str(self.table.id), "it does not say which columns identify a row")
        return CopiedKey.of(
            self.copy,
            str(self.table.id),
            tuple(key),
            [column.name for column in self.table.columns],
            self._pipeline,
            self.where,
        )

    def all(self) -> Copied:
        """Return all rows that are there."""
        here = self._wanted(self._present())
        return Copied(self._marked(here, is_gone=False), here)

    def since(self, position: LogPosition) -> Copied:
        """Return what changed after a position, which was checked: rows as they are now, and what is gone."""
        changes = self.log.changes(position.changeset, self.reached)
        if self.key.needs_table:
            return self._looked_up(changes)
        told = self._told(changes)
        return Copied(told, told)

    def several(self, rows: DataFrame) -> str | None:
        """Return a key of the copy that several rows have, in words; None when each has its own."""
        names = [quoted(name) for name in self.key.own]
        counted = rows.groupBy(*names).count().where("count > 1")
        found = counted.select(*(F.col(name).cast("string") for name in names)).first()
        if found is None:
            return None
        return ", ".join(f"{name} = {text}" for name, text in zip(self.key.own, found, strict=True))

    def _told(self, changes: DataFrame) -> DataFrame:
        """Return what a log tells of which each row has a key of its own: the newest change of each."""
        key = Window.partitionBy(*(quoted(name) for name in self.key.upstream))
        newest = F.row_number().over(key.orderBy(F.col(CHANGESET).desc(), F.col(ROW).desc()))
        rows = changes.withColumn("_esker_newest", newest).where("_esker_newest = 1")
        is_gone = F.col(OP) == "delete"
        if self.where is not None:
            # What does not belong here any more is gone, too.
            is_gone = is_gone | ~F.coalesce(F.expr(f"({self.where}\n)"), F.lit(False))
        # The log keeps columns that the table has dropped, for what is told of old changes.
        there = {column.name.lower() for column in self.table.columns}
        names = [name for name in self._names(changes) if name.lower() in there]
        return rows.select(*map(quoted, names), is_gone.alias(self.copy.deleted_column))

    def _looked_up(self, changes: DataFrame) -> Copied:
        """Return all rows that the table has of each key that changed, and those that are gone."""
        by = [quoted(name) for name in self.key.by]
        own = [quoted(name) for name in self.key.own]
        present = self._present()
        of_keys = present.join(changes.select(*by).distinct(), list(self.key.by), "left_semi")
        here = self._wanted(of_keys)
        names = self._names(present)
        known = {name.lower() for name in changes.columns}
        before = changes.select(*(quoted(name) for name in names if name.lower() in known))
        # What is there and no longer belongs to the copy is gone as well.
        candidates = before.unionByName(of_keys.select(*map(quoted, names)), allowMissingColumns=True)
        gone = candidates.join(here.select(*own).distinct(), list(self.key.own), "left_anti")
        gone = gone.dropDuplicates(list(self.key.own))
        return Copied(self._marked(here, is_gone=False).unionByName(self._marked(gone, is_gone=True)), here)

    def _present(self) -> DataFrame:
        """Return the rows that the table has, without those that it marks as deleted."""
        attempt = self.log.table
        if attempt.current is not None and attempt.is_as_written:
            rows = snapshot_frame(self.engine.spark, self.table.id.sql, attempt.current)
        else:
            # A snapshot has the columns of its time: where others have come since, the table itself is read.
            rows = self.engine.spark.read.table(self.table.id.sql)
        if self._pipeline is not None:
            return without_deleted(self._pipeline, rows)
        mark = self.copy.deleted_column
        return rows.where(~F.coalesce(F.col(quoted(mark)), F.lit(False))) if mark in rows.columns else rows

    def _wanted(self, rows: DataFrame) -> DataFrame:
        return rows.where(self.where) if self.where is not None else rows

    def _marked(self, rows: DataFrame, *, is_gone: bool) -> DataFrame:
        return rows.select(*map(quoted, self._names(rows)), F.lit(is_gone).alias(self.copy.deleted_column))

    def _names(self, rows: DataFrame) -> list[str]:
        marks = {self.copy.deleted_column.lower()}
        if self._pipeline is not None:
            marks.add(self._pipeline.deleted_column.lower())
        return [name for name in rows.columns if not is_own(name) and name.lower() not in marks]

    @property
    def _pipeline(self) -> Pipeline | None:
        """The pipeline that writes the table, if it is one of the project's."""
        return self.engine.project.pipeline_into(self.table.id.catalog, self.table.id.name)
