"""The large lane for modes in which a key may have several rows: what the edits say is done."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.iceberg.commit import Attempt
from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW
from esker.load.comparison import Compared
from esker.load.counts import RowCounts
from esker.load.edits import edit_steps, numbered_sql
from esker.load.incoming import ARRIVAL, DELETED, SEQUENCE
from esker.load.lanes.large import LargeBatch, level_for, sent_if_few
from esker.load.places import positions
from esker.project.reserved import HASH_COLUMN
from esker.project.types import quoted

_ARRIVAL = tuple(f"a{index}" for index in range(len(ARRIVAL)))
_EDIT = "_esker_edit"
"""Apart from the table's own columns, which may have any name."""


class LargeEdits(LargeBatch):
    """A batch on the executors whose keys may have several rows."""

    def _winners(self) -> DataFrame:
        """Return one row of each key, and keep all with the number of their key."""
        keys = [F.col(quoted(name)).alias(f"k{index}") for index, name in enumerate(self.rules.key)]
        narrow = self.rows.select(
            *keys,
            F.col(SEQUENCE).alias("place"),
            self._order().alias("ord"),
            *self._times(self._order()),
            F.col(DELETED).alias("del"),
            F.col(HASH_COLUMN).alias("hash"),
            *(F.col(name).alias(alias) for name, alias in zip(ARRIVAL, _ARRIVAL, strict=True)),
        )
        self._incoming = self._kept.keep(self._sql(numbered_sql(self.rules, "{incoming}"), incoming=narrow))
        first = self._incoming.where(F.col("place") == F.col("k"))
        return first.select(*(f"k{index}" for index in range(len(keys))), "ord", F.col("k").alias("winner"))

    def _order(self) -> Expression:
        if self.rules.order_by is not None:
            return F.col(quoted(self.rules.order_by))
        moment = self.rules.versions.moment if self.rules.versions is not None else None
        return F.lit(moment).cast("timestamp")

    def _compare(self, attempt: Attempt, moment: datetime) -> Compared[DataFrame]:
        edits = self._edits(attempt, moment)
        found = (
            edits.groupBy("outcome")
            .agg(
                F.count(F.lit(1)).alias("count"),
                F.count("op").alias("logged"),
                F.count(F.when(F.col("remember"), 1)).alias("unseen"),
            )
            .collect()
        )
        outcomes = {row["outcome"]: row["count"] for row in found if row["outcome"] is not None}
        duplicates = self.read - self.rejected - sum(outcomes.values()) + outcomes.get("missing", 0)
        counts = RowCounts.of_outcomes(outcomes, duplicates=duplicates, quarantined=self.rejected)
        self.given.check(counts, lambda: attempt.files.rows, self.tally)
        told = edits.where(F.col("writes") | F.col("op").isNotNull())
        rows = self._contents(attempt, told, sum(row["count"] for row in found))
        unseen = sum(row["unseen"] for row in found)
        remembered = self._unseen(edits, unseen) if unseen else None
        return Compared(
            counts=counts,
            doomed=positions(attempt, edits.where("removes"), "file", "pos"),
            rows=rows.where(_of_edit("writes")).select(*self._names, _of_edit("after").alias(HASH_COLUMN)),
            changes=self._log(rows) if self.given.log is not None else None,
            remembered=remembered,
            is_change=bool(self.rejected or remembered is not None or sum(row["logged"] for row in found)),
        )

    def _edits(self, attempt: Attempt, moment: datetime) -> DataFrame:
        frames = {
            "incoming": self._incoming,
            "stored": self._by_content(attempt, self._kept.keep(self._stored(attempt))),
            "forgotten": self._forgotten(attempt, moment),
        }
        for name, sql in edit_steps(self.rules, _ARRIVAL, self._undated):
            # Done at once: with all steps in one plan, planning takes minutes. The rows are narrow.
            frames[name] = self._sql(sql, **frames).localCheckpoint(eager=True)
        return frames["edits"]

    @property
    def _names(self) -> list[str]:
        return [quoted(column.name) for column in self.fields]

    def _contents(self, attempt: Attempt, edits: DataFrame, count: int) -> DataFrame:
        """Return the rows that edits are about: of the batch, or stored ones; each with its edit."""
        edit = F.struct(*(name for name in edits.columns if name not in ("file", "pos"))).alias(_EDIT)
        wanted = edits.where(F.col("place").isNotNull()).select(F.col("place").alias(SEQUENCE), edit)
        stored = edits.where(F.col("place").isNull()).select(
            F.col("file").alias("_file"), F.col("pos").alias("_pos"), edit
        )
        coming = self.rows.join(sent_if_few(wanted, count), SEQUENCE)
        there = self._target(attempt).join(sent_if_few(stored, count), ["_file", "_pos"])
        columns = [*self._names, _EDIT]
        rows = coming.select(*columns).unionByName(there.select(*columns))
        if self.rules.versions is not None:
            told = ("valid_from", "valid_to", "is_current")
            for name, source in zip(self.rules.versions.names, told, strict=True):
                rows = rows.withColumn(name, _of_edit(source).cast(rows.schema[name].dataType))
        return self._kept.keep(rows, level_for(count))

    def _unseen(self, edits: DataFrame, count: int) -> DataFrame | None:
        """Return the deletes that no row of the table will tell of: key and order value."""
        if self.rules.order_by is None:
            return None
        unseen = edits.where("remember").select(F.col("number").alias(SEQUENCE), F.col("final").alias(ORDER))
        keys = [quoted(name) for name in self.rules.key]
        return self.rows.join(sent_if_few(unseen, count), SEQUENCE).select(*keys, ORDER).repartition(1)

    def _log(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the change log."""
        beyond = F.lit(self.read) + F.monotonically_increasing_id()
        facts = [
            _of_edit("op").alias(OP),
            _of_edit("before").alias(HASH_BEFORE),
            _of_edit("after").alias(HASH_AFTER),
            F.coalesce(_of_edit("number"), beyond).alias(ROW),
        ]
        if self.rules.order_by:
            facts.append(_of_edit("final").alias(ORDER))
        return rows.where(_of_edit("op").isNotNull()).select(*self._names, *facts)


def _of_edit(name: str) -> Expression:
    return F.col(_EDIT).getField(name)
