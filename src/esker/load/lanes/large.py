"""The large lane: a keyed batch of any size, as Spark jobs on the executors.

The same steps as in the small lane. What is compared are narrow rows (key, order value, hash, place);
the content of a batch is kept once on the executors, and only filtered by what the comparison found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.check import BAD
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.stage import StagedFiles, stage
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import BadRows, SparkFailed
from esker.events import Step
from esker.ledger.change_log import (
    BATCH,
    CHANGESET,
    COMMITTED_AT,
    HASH_AFTER,
    HASH_BEFORE,
    OP,
    ORDER,
    PIPELINE,
    ROW,
    RUN,
    ChangeLog,
    LogRun,
)
from esker.ledger.delete_memory import DELETED_AT
from esker.ledger.outbox import Files
from esker.ledger.quarantine import Quarantine
from esker.load.counts import RowCounts
from esker.load.diff import (
    GONE,
    LOGGED,
    REPLACED,
    WRITTEN,
    KeyRules,
    again_sql,
    outcome_sql,
    stored_sql,
    winners_sql,
)
from esker.load.incoming import ARRIVAL, DELETED, SEQUENCE
from esker.load.memory import Memory
from esker.load.publish import Made
from esker.load.row_hash import HASH_COLUMN, spark_hash
from esker.project.types import Column, quoted
from esker.sources import ORIGIN

_BROADCAST_ROWS = 2_000_000
"""Up to so many rows, what was found about them is sent to every executor, so that content stays put."""


@dataclass
class LargeBatch:
    """A keyed batch on the executors. It is a `Change`: ready to be published."""

    engine: Engine
    table: TableId
    rules: KeyRules
    columns: tuple[str, int]
    shared: LogRun
    frame: DataFrame
    """Incoming rows: the table's columns, DELETED, ARRIVAL and BAD."""
    fields: tuple[Column, ...]
    """The table's columns, without Esker's own."""
    ids: dict[str, int]
    log: ChangeLog | None
    quarantine: Callable[[], Quarantine] | None
    reached: Callable[[Step], None]
    memory: Memory
    guard: Callable[[RowCounts, int], None]
    """Raises when the batch must not be published as it is; told how many rows the table shows."""
    _kept: list[DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        counted = self.rules.hashed(tuple(column.name for column in self.fields))
        hashed = spark_hash(tuple(c for c in self.fields if c.name in counted), self.ids)
        self.rows = self._keep(self.frame.withColumn(HASH_COLUMN, hashed))
        has_key = F.lit(True)
        for name in self.rules.key:
            has_key = has_key & F.col(quoted(name)).isNotNull()
        first_key = F.col(quoted(self.rules.key[0]))
        with explained("cannot read the rows", self.engine.log, reads_source=True):
            found = self.rows.agg(
                F.count(F.lit(1)).alias("read"),
                F.count(BAD).alias("bad"),
                F.min(BAD).alias("first"),
                F.max(BAD).alias("last"),
                F.count(F.when(~has_key, 1)).alias("keyless"),
                # As texts: Python would take a moment in the hour that comes twice for another one.
                F.min(first_key).cast("string").alias("low"),
                F.max(first_key).cast("string").alias("high"),
                (F.max(quoted(self.rules.order_by)) if self.rules.order_by else F.lit(None)).alias("newest"),
            ).first()
        assert found is not None
        self.read, self.keyless = found["read"], found["keyless"]
        self._range, self._newest = (found["low"], found["high"]), found["newest"]
        if found["bad"]:
            self.release()
            examples = sorted({found["first"], found["last"]})
            raise BadRows(self.shared.pipeline, found["bad"], found["read"], examples)
        self.rejected = self.rows.where(~has_key) if self.keyless else None
        if self.keyless:
            self.rows = self.rows.where(has_key)
        self.winners = self._keep(self._winners())

    def first_attempt(self) -> Attempt | None:
        return None

    def release(self) -> None:
        """Give back what is kept on the executors."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        moment = datetime.now(UTC)
        kept_before = len(self._kept)
        try:
            with explained("cannot compare the rows", self.engine.log, reads_source=True):
                return self._make(attempt, changeset, moment)
        except SparkFailed as error:
            if Attempt(self.engine, self.table).current == attempt.current:
                raise
            # Files expired after somebody else's commit: this attempt is lost anyway.
            raise SwapFailed("SparkFailed", error.reason or error.message) from error
        finally:
            for frame in self._kept[kept_before:]:
                frame.unpersist()
            del self._kept[kept_before:]

    def _make(self, attempt: Attempt, changeset: int, moment: datetime) -> Made | RowCounts:
        stored = self._keep(self._stored(attempt))
        verdicts = self._keep(self._verdicts(stored, self._forgotten(attempt, moment)))
        outcomes = {row["outcome"]: row["count"] for row in verdicts.groupBy("outcome").count().collect()}
        winners = sum(outcomes.values()) - outcomes.get("missing", 0)
        counts = RowCounts.of_outcomes(
            outcomes, duplicates=self.read - self.keyless - winners, quarantined=self.keyless
        )
        if self.rules.is_complete:
            self.guard(counts, stored.where(~F.col("s_deleted")).count())
        doomed = self._doomed(attempt, stored, verdicts)
        self.reached(Step.LOCATED)
        is_logged = any(outcomes.get(outcome) for outcome in LOGGED)
        has_gone = any(outcomes.get(outcome) for outcome in GONE)
        last_rows = self._last_rows(attempt, verdicts) if has_gone else None
        token = uuid4().hex
        memory = self._remember(verdicts, last_rows, changeset, moment, token)
        is_change = is_logged or bool(self.keyless) or bool(memory)
        if not doomed and not is_change:
            return counts
        data = self._write(verdicts, last_rows, f"data-{token}", winners)
        deletes = attempt.delete(doomed)
        changes: Files | None = None
        logged: StagedFiles | None = None
        if self.log is not None:
            logged = self._log(self.log, verdicts, last_rows, changeset, moment, token)
            changes = self.log.side.listed(changeset, logged.places)
        rejected = self._reject(changeset, moment, token) if self.keyless else ()
        self.reached(Step.WRITTEN)

        def commit(attempt: Attempt, summary: Any) -> tuple[int, int]:
            if not data.files and not doomed:
                return attempt.touch(summary)
            return attempt.row_delta([data], deletes, doomed, summary)

        size = data.bytes + deletes.bytes
        return Made(commit, counts, size, changes, rejected, memory, logged, is_change)

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept

    def _winners(self) -> DataFrame:
        keys = [F.col(quoted(name)).alias(f"k{index}") for index, name in enumerate(self.rules.key)]
        order = F.col(quoted(self.rules.order_by)) if self.rules.order_by else F.lit(None).cast("bigint")
        narrow = self.rows.select(
            *keys,
            order.alias("ord"),
            F.col(DELETED).alias("del"),
            F.col(HASH_COLUMN).alias("hash"),
            *(F.col(name).alias(f"a{index}") for index, name in enumerate(ARRIVAL)),
        )
        arrival = tuple(f"a{index}" for index in range(len(ARRIVAL)))
        found = self._sql(winners_sql(self.rules, "{incoming}", arrival), incoming=narrow)
        return found.select(
            *(f"k{index}" for index in range(len(keys))),
            "ord",
            "eff",
            "del",
            "hash",
            F.col(f"a{ARRIVAL.index(SEQUENCE)}").alias("winner"),
        )

    def _stored(self, attempt: Attempt) -> DataFrame:
        """Return the stored versions of the batch's keys, with their places."""
        rules = self.rules
        target = self._target(attempt).select(
            *(F.col(quoted(name)).alias(f"t{index}") for index, name in enumerate(rules.key)),
            F.col(HASH_COLUMN).alias("s_hash"),
            (F.col(quoted(rules.order_by)) if rules.order_by else F.lit(None).cast("bigint")).alias(
                "s_order"
            ),
            F.coalesce(
                F.col(quoted(rules.deleted_column)) if rules.deleted_column else F.lit(False),
                F.lit(False),
            ).alias("s_deleted"),
            F.col("_file").alias("file"),
            F.col("_pos").alias("pos"),
        )
        # Sorted or growing keys leave most files out; random ones none.
        if self._range[0] is not None and not rules.is_complete:
            kind = target.schema["t0"].dataType
            low, high = (F.lit(bound).cast(kind) for bound in self._range)
            target = target.where(F.col("t0").between(low, high))
        winners = self.winners.select("winner", *(f"k{index}" for index in range(len(rules.key))))
        matches = [F.col(f"t{index}") == F.col(f"k{index}") for index in range(len(rules.key))]
        found = target.join(winners, matches, "left" if rules.is_complete else "inner")
        # Stored rows that a complete snapshot lacks get numbers of their own, below zero.
        number = F.coalesce(F.col("winner"), -1 - F.monotonically_increasing_id())
        return found.select(number.alias("winner"), "file", "pos", "s_hash", "s_order", "s_deleted")

    def _target(self, attempt: Attempt) -> DataFrame:
        """Return the table at exactly the snapshot that the attempt compares with."""
        if attempt.current is None:
            return self.engine.spark.table(self.table.sql).where("false").select("*", "_file", "_pos")
        reader = self.engine.spark.read
        if attempt.is_as_written:
            reader = reader.option("versionAsOf", str(attempt.current))
        # A snapshot has the columns of its time: later ones would be missing, renamed ones unknown. Then
        # the table itself is read; if it moves on meanwhile, the swap fails and all is done again.
        return reader.table(self.table.sql).select("*", "_file", "_pos")

    def _forgotten(self, attempt: Attempt, moment: datetime) -> DataFrame:
        """Return the order values of remembered deletes of the batch's keys."""
        memory = self.memory.known(attempt) if self.rules.order_by else None
        if memory is None:
            return self.winners.where("false").select(
                F.col("winner").alias("asked"), F.col("ord").alias("forgotten")
            )
        kept = self.engine.spark.table(memory.side.id.sql)
        kept = kept.where(F.col(DELETED_AT) >= F.lit(moment - self.memory.late)).select(
            *(F.col(quoted(name)).alias(f"t{index}") for index, name in enumerate(self.rules.key)),
            F.col(ORDER).alias("forgotten"),
        )
        matches = [F.col(f"t{index}") == F.col(f"k{index}") for index in range(len(self.rules.key))]
        found = kept.join(self.winners, matches).groupBy(F.col("winner").alias("asked"))
        return found.agg(F.max("forgotten").alias("forgotten"))

    def _remember(
        self, verdicts: DataFrame, last_rows: DataFrame | None, changeset: int, moment: datetime, token: str
    ) -> Files:
        """Write down the deletes that no row of the table will tell of."""
        if self.rules.order_by is None:
            return ()
        keys = [quoted(name) for name in self.rules.key]
        is_new = F.col("final").isNotNull() & F.coalesce(F.col("final") > F.col("forgotten"), F.lit(True))
        unseen = verdicts.where(((F.col("file").isNull() & F.col("del")) | F.col("again")) & is_new)
        unseen = unseen.select(F.col("winner").alias(SEQUENCE), "final")
        rows = self.rows.join(F.broadcast(unseen), SEQUENCE).select(*keys, F.col("final").alias(ORDER))
        if last_rows is not None and self.rules.deleted_column is None:
            rows = rows.unionByName(last_rows.select(*keys, F.col("final").alias(ORDER)))
        rows = rows.where(F.col(ORDER).isNotNull())
        if not rows.limit(1).count():
            return ()
        memory = self.memory.open()
        rows = rows.select(
            "*",
            F.lit(changeset).cast("bigint").alias(CHANGESET),
            F.lit(moment).alias(DELETED_AT),
        )
        staged = stage(self.engine, memory.side.id, rows.coalesce(1), f"deletes-{token}")
        return memory.side.listed(changeset, staged.places)

    def _verdicts(self, stored: DataFrame, forgotten: DataFrame) -> DataFrame:
        sql = f"""
            SELECT winner, CASE WHEN winner < 0 THEN 'missing' ELSE {outcome_sql(self.rules)} END AS outcome,
                   hash, s_hash, file, pos, del, forgotten, {again_sql(self.rules)} AS again,
                   CASE WHEN s_order IS NULL OR eff > s_order THEN eff ELSE s_order END AS final
            FROM (SELECT coalesce(w.winner, s.winner) AS winner, w.ord, w.del, w.hash, s.s_hash, s.s_order,
                         w.eff, s.s_deleted, s.file, s.pos, s.winner IS NOT NULL AS stored, f.forgotten
                  FROM {{winners}} AS w
                  {"FULL" if self.rules.is_complete else "LEFT"} JOIN ({stored_sql("{stored}")}) AS s
                    ON s.winner = w.winner
                  LEFT JOIN {{forgotten}} AS f ON f.asked = w.winner) AS compared
            WHERE winner >= 0 OR NOT s_deleted"""
        verdicts = self._sql(sql, winners=self.winners, stored=stored, forgotten=forgotten)
        # A key that is missing goes as late as the newest row of the snapshot says.
        newest = F.lit(self._newest).cast(verdicts.schema["final"].dataType)
        late = F.greatest(F.col("final"), newest)
        return verdicts.withColumn("final", F.when(F.col("winner") < 0, late).otherwise(F.col("final")))

    def _doomed(self, attempt: Attempt, stored: DataFrame, verdicts: DataFrame) -> dict[FileEntry, BitMap64]:
        """Return the positions to delete: of versions that are replaced, and of surplus copies of a key."""
        kept = verdicts.select(
            "winner", F.col("file").alias("kept_file"), F.col("pos").alias("kept_pos"), "outcome"
        )
        surplus = (F.col("file") != F.col("kept_file")) | (F.col("pos") != F.col("kept_pos"))
        gone = stored.join(kept, "winner").where(F.col("outcome").isin(*REPLACED) | surplus)
        files = {file.path: file for file in attempt.files.data}
        grouped = gone.groupBy("file").agg(F.collect_list("pos").alias("positions"))
        doomed = {}
        for row in grouped.toLocalIterator():
            if row["file"] not in files:
                raise SwapFailed("CommitFailedException", "the table moved while it was read")
            doomed[files[row["file"]]] = BitMap64(row["positions"])
        return doomed

    def _last_rows(self, attempt: Attempt, verdicts: DataFrame) -> DataFrame:
        """Return the stored rows of keys that are deleted, with what the verdicts say of them."""
        gone = verdicts.where(F.col("outcome").isin(*GONE)).select(
            F.col("file").alias("_file"), F.col("pos").alias("_pos"), "winner", "outcome", "s_hash", "final"
        )
        whole = self._target(attempt).join(F.broadcast(gone), ["_file", "_pos"])
        if self.rules.deleted_column:
            whole = whole.withColumn(self.rules.deleted_column, F.lit(True))
            if self.rules.order_by:
                kind = whole.schema[self.rules.order_by].dataType
                whole = whole.withColumn(self.rules.order_by, F.col("final").cast(kind))
        return self._keep(whole.drop("_file", "_pos"))

    def _arriving(self, verdicts: DataFrame, outcomes: tuple[str, ...]) -> DataFrame:
        """Return the incoming rows with some outcomes, as the table gets them."""
        wanted = verdicts.where(F.col("outcome").isin(*outcomes)).select(
            F.col("winner").alias(SEQUENCE), "outcome", "s_hash", "final"
        )
        if self.read <= _BROADCAST_ROWS:
            wanted = F.broadcast(wanted)
        rows = self.rows.join(wanted, SEQUENCE)
        if self.rules.deleted_column:
            rows = rows.withColumn(self.rules.deleted_column, F.lit(False))
        return rows

    def _write(
        self, verdicts: DataFrame, last_rows: DataFrame | None, group: str, winners: int
    ) -> StagedFiles:
        names = [*(quoted(column.name) for column in self.fields), HASH_COLUMN]
        rows = self._arriving(verdicts, WRITTEN).select(*names)
        if last_rows is not None and self.rules.deleted_column:
            rows = rows.unionByName(last_rows.select(*names))
        keys = [quoted(name) for name in self.rules.key]
        return stage(self.engine, self.table, rows.sortWithinPartitions(*keys), group)

    def _log(
        self,
        log: ChangeLog,
        verdicts: DataFrame,
        last_rows: DataFrame | None,
        changeset: int,
        moment: datetime,
        token: str,
    ) -> StagedFiles:
        names = [quoted(column.name) for column in self.fields]
        is_gone = F.col("outcome").isin(*GONE)
        facts = [
            F.when(is_gone, "delete").otherwise(F.col("outcome")).alias(OP),
            F.col("s_hash").alias(HASH_BEFORE),
            F.when(~is_gone, F.col(HASH_COLUMN)).alias(HASH_AFTER),
        ]
        if self.rules.order_by:
            facts.append(F.col("final").alias(ORDER))
        logged = tuple(outcome for outcome in LOGGED if outcome not in GONE)
        rows = self._arriving(verdicts, logged).select(*names, *facts, F.col(SEQUENCE).alias(ROW))
        if last_rows is not None:
            rows = rows.unionByName(last_rows.select(*names, *facts, F.col("winner").alias(ROW)))
        rows = rows.select(
            "*",
            F.lit(changeset).cast("bigint").alias(CHANGESET),
            F.lit(self.shared.pipeline).alias(PIPELINE),
            F.lit(self.shared.run).alias(RUN),
            F.lit(self.shared.batch).alias(BATCH),
            F.lit(moment).alias(COMMITTED_AT),
        )
        lacking = [field for field in log.names if field not in rows.columns]
        for name in lacking:
            rows = rows.withColumn(name, F.lit(None).cast(_spark_type(self.engine, log.side.id, name)))
        return stage(self.engine, log.side.id, rows, f"log-{token}")

    def _reject(self, changeset: int, moment: datetime, token: str) -> Files:
        assert self.quarantine is not None
        assert self.rejected is not None
        quarantine = self.quarantine()
        names = [quoted(column.name) for column in self.fields]
        missing = F.concat_ws(
            ", ", *(F.when(F.col(quoted(name)).isNull(), F.lit(f'"{name}"')) for name in self.rules.key)
        )
        rows = self.rejected.select(
            F.lit(changeset).cast("bigint").alias("changeset"),
            F.lit(self.shared.pipeline).alias("pipeline"),
            F.lit(self.shared.run).alias("run"),
            F.lit(self.shared.batch).alias("batch"),
            F.col(SEQUENCE).alias("row"),
            F.col(ORIGIN).alias("origin"),
            F.array(F.lit("key")).alias("rules"),
            F.concat(F.lit("the key column "), missing, F.lit(" has no value")).alias("reason"),
            F.to_json(F.struct(*names), {"ignoreNullFields": "false"}).alias("payload"),
            F.lit(moment).alias("quarantined_at"),
        )
        staged = stage(self.engine, quarantine.side.id, rows.coalesce(1), f"rejected-{token}")
        return quarantine.side.listed(changeset, staged.places)

    def _sql(self, text: str, **frames: Any) -> DataFrame:
        return self.engine.spark.sql(text, None, **frames)


def _spark_type(engine: Engine, table: TableId, name: str) -> Any:
    return engine.spark.table(table.sql).schema[name].dataType
