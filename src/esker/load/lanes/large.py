"""The large lane: a keyed batch of any size, as Spark jobs on the executors.

The same steps as in the small lane. What is compared are narrow rows (key, order value, hash, place);
the content of a batch is kept once on the executors, and only filtered by what the comparison found.

A row of the batch is known by its number, and a source without a fixed order numbers its rows differently
each time. So the rows are read exactly once: if an executor ends with some of them, the whole batch is read
and compared again. Everything else is computed from them and from the table's snapshot, and would be the
same a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from esker.contracts.check import BAD, payload
from esker.contracts.rules import RowRules, Tally
from esker.engine.compat import from_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.stage import stage
from esker.engine.iceberg.table import TableId
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import BadRows, RowsLost, SparkFailed
from esker.events import Step
from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW
from esker.ledger.foreign import foreign
from esker.ledger.side_table import DELETED_AT, Stamp
from esker.load.batch import measures_of
from esker.load.comparison import NO_KEY, NO_ORDER, Compared, Comparison
from esker.load.counts import RowCounts
from esker.load.diff import GONE, LOGGED, REPLACED, WRITTEN, Undated, verdicts_sql, winners_sql
from esker.load.incoming import ARRIVAL, DELETED, SEQUENCE
from esker.load.places import placed_rows, positions
from esker.load.publish import Change, Made
from esker.load.rejected import told_rows, told_with_origin
from esker.load.row_hash import spark_hash
from esker.load.unknown import UNKNOWN
from esker.project.layout import SortField
from esker.project.reserved import HASH_COLUMN
from esker.project.types import quoted
from esker.sources import ORIGIN, UNTIL

BROADCAST_ROWS = 2_000_000
"""Up to so many rows, what was found about them is sent to every executor, so that content stays put."""


_READS = 3
"""So often the rows of a batch are read, where executors end with some of them."""
_IN_FILE = 36
"""Bits of a number that count the rows of a file."""
_VERDICT = "_esker_verdict"
_Done = TypeVar("_Done")


@dataclass
class LargeBatch(Change):
    """A keyed batch on the executors."""

    engine: Engine
    table: TableId
    given: Comparison
    frame: Callable[[], DataFrame]
    """Reads the incoming rows: the table's columns, DELETED, ARRIVAL and BAD, perhaps UNTIL."""
    fits_memory: bool
    """The rows are few enough to be kept in the memory of the executors."""
    checks: RowRules
    rejects: bool
    """Bad rows go to the quarantine."""

    def __post_init__(self) -> None:
        self._kept = KeptFrames(self.engine)
        self._reads = 0
        self.rules, self.fields = self.given.rules, self.given.fields
        self._with_rows(lambda: None)

    def _with_rows(self, work: Callable[[], _Done]) -> _Done:
        """Do something with the rows of the batch, and all of it again where some of them are lost."""
        while True:
            try:
                if not len(self._kept):
                    self._reads += 1
                    self._read()
                return work()
            except RowsLost:
                self.release()
                if self._reads >= _READS:
                    raise

    def _read(self) -> None:
        """Read the rows, and find out about them what does not depend on the table."""
        frame = self.frame()
        counted = self.rules.hashed(tuple(column.name for column in self.fields))
        self._hashed = spark_hash(tuple(c for c in self.fields if c.name in counted), self.given.ids)
        # Spark keeps in memory until there is none, and more than it counts: whole rows of a batch that may
        # be of any size go to the disks of the executors.
        level = StorageLevel.MEMORY_AND_DISK if self.fits_memory else StorageLevel.DISK_ONLY
        self.rows = self._kept.keep_once(frame.withColumn(HASH_COLUMN, self._hashed), level)
        has_key = F.lit(True)
        for name in self.rules.key:
            has_key = has_key & F.col(quoted(name)).isNotNull()
        is_good = has_key & F.col(BAD).isNull()
        if UNKNOWN in frame.columns:
            is_good = is_good & F.col(UNKNOWN).isNull()
        if self.rules.dates is not None:
            is_good = is_good & (F.col(quoted(self.rules.dates)).isNotNull() | F.col(DELETED))
        origin = F.col(ORIGIN) if ORIGIN in self.rows.columns else F.lit(None).cast("string")
        told = told_with_origin(F.col(BAD).getField("reason"), origin)
        is_counted = self.checks.columns[0] in frame.columns
        broken = self.checks.counts() if is_counted else {}
        first_key = F.col(quoted(self.rules.key[0]))
        order = _or_nothing(self.rules.order_by)
        is_undated, (_, bound) = F.col(DELETED) & order.isNull(), self._times(order)
        with explained("cannot read the rows", self.engine.log, reads_source=True):
            found = self.rows.agg(
                F.count(F.lit(1)).alias("read"),
                F.count(BAD).alias("bad"),
                F.min(told).alias("first"),
                F.max(told).alias("last"),
                F.count(F.when(~is_good, 1)).alias("rejected"),
                F.count(F.when(is_undated, 1)).alias("undated"),
                F.count(F.when(is_undated & bound.isNull(), 1)).alias("loose"),
                # As texts: Python would take a moment in the hour that comes twice for another one.
                F.min(first_key).cast("string").alias("low"),
                F.max(first_key).cast("string").alias("high"),
                *(count.alias(f"rule {name}") for name, count in broken.items()),
            ).first()
        assert found is not None
        self.read, self.rejected = found["read"], found["rejected"]
        self.tally = Tally(self.read, self.rejected, {name: found[f"rule {name}"] for name in broken})
        self._range = found["low"], found["high"]
        self._undated = Undated.of(found["undated"], found["loose"]) if self.rules.order_by else Undated.NONE
        if found["bad"] and not self.rejects:
            self.release()
            examples = sorted({found["first"], found["last"]})
            raise BadRows(self.given.pipeline, found["bad"], found["read"], examples)
        self.rejected_rows = self.rows.where(~is_good)
        self.protected: DataFrame | None = None
        if self.rejected and self.rules.is_complete:
            keys = [F.col(quoted(name)).alias(f"p{index}") for index, name in enumerate(self.rules.key)]
            self.protected = self.rejected_rows.where(has_key).select(*keys).distinct()
        if self.rejected:
            self.rows = self.rows.where(is_good)
        self.winners = self._kept.keep(self._winners())

    @property
    def columns(self) -> tuple[str, int]:
        return self.given.table

    def release(self) -> None:
        self._kept.let_go()

    @property
    def reads_again(self) -> bool:
        return self._reads > 1

    @property
    def times_read(self) -> int:
        return self._reads

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        return self._with_rows(lambda: self._compared(attempt, self.given.stamp(changeset)))

    def _compared(self, attempt: Attempt, stamp: Stamp) -> Made | RowCounts:
        kept_before = len(self._kept)
        try:
            with explained("cannot compare the rows", self.engine.log, reads_source=True):
                return self._make(attempt, stamp)
        except SparkFailed as error:
            if Attempt(self.engine, self.table).current == attempt.current:
                raise
            # Files expired after somebody else's commit: this attempt is lost anyway.
            raise SwapFailed("SparkFailed", error.reason or error.message) from error
        finally:
            self._kept.let_go(kept_before)

    def _make(self, attempt: Attempt, stamp: Stamp) -> Made | RowCounts:
        self.given.check_base(attempt)
        compared = self._compare(attempt, stamp.moment)
        self.given.reached(Step.LOCATED)
        is_resolved = self.given.resolved is not None
        if compared.is_nothing and not is_resolved:
            return compared.counts
        keys = [SortField(name) for name in self.rules.key]
        data = stage(self.engine, self.table, compared.rows, f"data-{uuid4()}", sort=keys)
        deletes = attempt.delete(compared.doomed)
        owed, files = self.given.stage_sides(
            stamp,
            changes=compared.changes,
            rejected=self._rejected() if self.rejected else None,
            deletes=compared.remembered,
        )
        self.given.reached(Step.WRITTEN)

        def commit(attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
            if not data.files and not compared.doomed:
                return attempt.touch(summary)
            return attempt.row_delta([data], deletes, compared.doomed, summary)

        size = data.bytes + deletes.bytes
        return Made(
            commit,
            compared.counts,
            size,
            owed,
            files,
            compared.is_change or is_resolved,
            stamp.summary(),
            measures=measures_of(self.tally),
        )

    def _compare(self, attempt: Attempt, moment: datetime) -> Compared[DataFrame]:
        stored = self._by_content(attempt, self._kept.keep(self._stored(attempt)))
        verdicts = self._kept.keep(self._verdicts(stored, self._forgotten(attempt, moment)))
        found = (
            verdicts.groupBy("outcome")
            .agg(F.count(F.lit(1)).alias("count"), F.count(F.when(self._is_untold(), 1)).alias("untold"))
            .collect()
        )
        outcomes = {row["outcome"]: row["count"] for row in found}
        duplicates = self.read - self.rejected - sum(outcomes.values()) + outcomes.get("missing", 0)
        counts = RowCounts.of_outcomes(outcomes, duplicates=duplicates, quarantined=self.rejected)
        live = stored.where(~F.col("s_deleted"))
        rows = live.count if self.rules.is_complete else lambda: attempt.files.rows
        self.given.check(counts, rows, self.tally)
        gone = sum(outcomes.get(outcome, 0) for outcome in GONE)
        last_rows = self._last_rows(attempt, verdicts, gone) if gone else None
        untold = sum(row["untold"] for row in found)
        remembered = self._remembered(verdicts, last_rows, untold) if untold else None
        return Compared(
            counts=counts,
            doomed=self._doomed(attempt, stored, verdicts),
            rows=self._written(verdicts, last_rows),
            changes=self._changes(verdicts, last_rows) if self.given.log is not None else None,
            remembered=remembered,
            is_change=bool(
                self.rejected or remembered is not None or any(outcomes.get(name) for name in LOGGED)
            ),
        )

    def _winners(self) -> DataFrame:
        keys = [F.col(quoted(name)).alias(f"k{index}") for index, name in enumerate(self.rules.key)]
        order = _or_nothing(self.rules.order_by)
        narrow = self.rows.select(
            *keys,
            order.alias("ord"),
            *self._times(order),
            F.col(DELETED).alias("del"),
            F.col(HASH_COLUMN).alias("hash"),
            *(F.col(name).alias(f"a{index}") for index, name in enumerate(ARRIVAL)),
        )
        arrival = tuple(f"a{index}" for index in range(len(ARRIVAL)))
        sql = winners_sql(self.rules, "{incoming}", arrival, self._undated)
        found = self._sql(sql, incoming=narrow)
        return found.select(
            *(f"k{index}" for index in range(len(keys))),
            "ord",
            "eff",
            "del",
            "hash",
            F.col(f"a{ARRIVAL.index(SEQUENCE)}").alias("winner"),
        )

    def _times(self, order: Expression) -> tuple[Expression, Expression]:
        """Return `until` and `bound`, as `dated_sql` wants them."""
        kind = self.rows.select(order).schema[0].dataType
        if UNTIL not in self.rows.columns:
            return F.lit(0).cast("bigint").alias("until"), F.lit(None).cast(kind).alias("bound")
        until = F.col(UNTIL)
        bound = until if isinstance(kind, TimestampType | TimestampNTZType | DateType) else F.lit(None)
        number = F.coalesce(F.unix_micros(until), F.lit(0))
        return number.alias("until"), bound.cast(kind).alias("bound")

    def _stored(self, attempt: Attempt) -> DataFrame:
        """Return the stored versions of the batch's keys, with their places."""
        rules = self.rules
        target = self._candidates(attempt).select(
            *(F.col(quoted(name)).alias(f"t{index}") for index, name in enumerate(rules.key)),
            F.col(HASH_COLUMN).alias("s_hash"),
            _or_nothing(rules.order_column).alias("s_order"),
            _or_nothing(rules.versions.valid_to if rules.versions else None).alias("s_to"),
            F.coalesce(
                F.col(quoted(rules.deleted_column)) if rules.deleted_column else F.lit(False),
                F.lit(False),
            ).alias("s_deleted"),
            F.col("_file").alias("file"),
            F.col("_pos").alias("pos"),
        )
        winners = self.winners.select("winner", *(f"k{index}" for index in range(len(rules.key))))
        matches = [F.col(f"t{index}") == F.col(f"k{index}") for index in range(len(rules.key))]
        found = target.join(winners, matches, "left" if rules.is_complete else "inner")
        if self.protected is not None:
            # The source has these keys, though not in a row that could be loaded.
            same = [F.col(f"t{index}") == F.col(f"p{index}") for index in range(len(rules.key))]
            lacked = found.where(F.col("winner").isNull()).join(self.protected, same, "left_anti")
            found = found.where(F.col("winner").isNotNull()).unionByName(lacked)
        number = F.col("winner")
        if rules.is_complete:
            # Stored rows that a complete snapshot lacks get numbers of their own, below zero: by their place,
            # because numbers in the order of arrival would be others if an executor ends with some of them.
            found = found.join(F.broadcast(self._file_numbers(attempt)), "file", "left")
            place = F.shiftleft(F.col("file_number"), _IN_FILE) + F.col("pos")
            # Of another snapshot's file: the table moved, which `positions` notices.
            number = F.coalesce(number, -1 - F.coalesce(place, F.col("pos")))
        return found.select(number.alias("winner"), "file", "pos", "s_hash", "s_order", "s_to", "s_deleted")

    def _file_numbers(self, attempt: Attempt) -> DataFrame:
        """Return a number, from 1, for each data file of the snapshot that the attempt compares with."""
        paths = [file.path for file in attempt.files.data]
        numbers = pa.table(
            {
                "file": pa.array(paths, pa.string()),
                "file_number": pa.array(range(1, len(paths) + 1), pa.int64()),
            }
        )
        return from_arrow(self.engine.spark, numbers)

    def _by_content(self, attempt: Attempt, stored: DataFrame) -> DataFrame:
        """Return stored rows with the hashes of their content, also where another engine wrote them."""
        theirs = foreign(attempt).doubtful(attempt.files.data)
        doubtful = F.col("s_hash").isNull()
        if theirs:
            doubtful = doubtful | F.col("file").isin([file.path for file in theirs])
        # Rows that a complete batch lacks are not compared.
        wanted = stored.where(doubtful & (F.col("winner") >= 0)).select(
            F.col("file").alias("_file"), F.col("pos").alias("_pos")
        )
        count = wanted.count()
        if not count:
            return stored
        anew = self._candidates(attempt).join(sent_if_few(wanted, count), ["_file", "_pos"])
        anew = anew.select(
            F.col("_file").alias("file"), F.col("_pos").alias("pos"), self._hashed.alias("anew")
        )
        found = stored.join(anew, ["file", "pos"], "left")
        return self._kept.keep(found.withColumn("s_hash", F.coalesce("anew", "s_hash")).drop("anew"))

    def _candidates(self, attempt: Attempt) -> DataFrame:
        """Return the rows of the table whose keys lie between those of the batch."""
        target = self._target(attempt)
        # Sorted or growing keys leave most files out; random ones none.
        if self._range[0] is None or self.rules.is_complete:
            return target
        first = self.rules.key[0]
        kind = target.schema[first].dataType
        low, high = (F.lit(bound).cast(kind) for bound in self._range)
        return target.where(F.col(quoted(first)).between(low, high))

    def _target(self, attempt: Attempt) -> DataFrame:
        return placed_rows(self.engine, self.table, attempt)

    def _forgotten(self, attempt: Attempt, moment: datetime) -> DataFrame:
        """Return the order values of remembered deletes of the batch's keys."""
        memory = self.given.memory.known(attempt) if self.rules.order_by else None
        if memory is None:
            return self.winners.where("false").select(
                F.col("winner").alias("asked"), F.col("ord").alias("forgotten")
            )
        kept = self.engine.spark.table(memory.side.id.sql)
        kept = kept.where(F.col(DELETED_AT) >= F.lit(moment - self.given.memory.late)).select(
            *(F.col(quoted(name)).alias(f"t{index}") for index, name in enumerate(self.rules.key)),
            F.col(ORDER).alias("forgotten"),
        )
        matches = [F.col(f"t{index}") == F.col(f"k{index}") for index in range(len(self.rules.key))]
        found = kept.join(self.winners, matches).select(F.col("winner").alias("asked"), "forgotten")
        if self.rules.versions is not None:
            return found
        return found.groupBy("asked").agg(F.max("forgotten").alias("forgotten"))

    def _is_untold(self) -> Expression:
        """Return whether a verdict is a delete that no row of the table will tell of."""
        if self.rules.order_by is None:
            return F.lit(False)
        is_new = F.col("final").isNotNull() & F.coalesce(F.col("final") > F.col("forgotten"), F.lit(True))
        untold = ((F.col("file").isNull() & F.col("del")) | F.col("again")) & is_new
        if self.rules.deleted_column is None:
            untold = untold | (F.col("outcome").isin(*GONE) & F.col("final").isNotNull())
        return untold

    def _remembered(self, verdicts: DataFrame, last_rows: DataFrame | None, count: int) -> DataFrame:
        """Return the key and the order value of deletes that no row of the table will tell of."""
        keys = [quoted(name) for name in self.rules.key]
        untold = verdicts.where(self._is_untold() & ~F.col("outcome").isin(*GONE))
        untold = untold.select(F.col("winner").alias(SEQUENCE), F.col("final").alias(ORDER))
        rows = self.rows.join(sent_if_few(untold, count), SEQUENCE).select(*keys, ORDER)
        if last_rows is not None and self.rules.deleted_column is None:
            gone = last_rows.select(*keys, _of_verdict("final").alias(ORDER))
            rows = rows.unionByName(gone.where(F.col(ORDER).isNotNull()))
        # As a step of its own: coalesce(1) would let one task alone look for them.
        return rows.repartition(1)

    def _verdicts(self, stored: DataFrame, forgotten: DataFrame) -> DataFrame:
        sql = verdicts_sql(self.rules, "{winners}", "{stored}", "{forgotten}")
        return self._sql(sql, winners=self.winners, stored=stored, forgotten=forgotten)

    def _doomed(self, attempt: Attempt, stored: DataFrame, verdicts: DataFrame) -> dict[FileEntry, BitMap64]:
        """Return the positions to delete: of versions that are replaced, and of surplus copies of a key."""
        kept = verdicts.select(
            "winner", F.col("file").alias("kept_file"), F.col("pos").alias("kept_pos"), "outcome"
        )
        surplus = (F.col("file") != F.col("kept_file")) | (F.col("pos") != F.col("kept_pos"))
        gone = stored.join(kept, "winner").where(F.col("outcome").isin(*REPLACED) | surplus)
        return positions(attempt, gone, "file", "pos")

    def _last_rows(self, attempt: Attempt, verdicts: DataFrame, count: int) -> DataFrame:
        """Return the stored rows of keys that are deleted, with what the verdicts say of them."""
        gone = verdicts.where(F.col("outcome").isin(*GONE)).select(
            F.col("file").alias("_file"), F.col("pos").alias("_pos"), _as_one()
        )
        whole = self._target(attempt).join(sent_if_few(gone, count), ["_file", "_pos"])
        # Other engines leave rows with a hash of other rows: it must not go on into Esker's own files.
        whole = whole.withColumn(HASH_COLUMN, self._hashed)
        if self.rules.deleted_column:
            whole = whole.withColumn(self.rules.deleted_column, F.lit(True))
            if self.rules.order_by:
                kind = whole.schema[self.rules.order_by].dataType
                whole = whole.withColumn(self.rules.order_by, _of_verdict("final").cast(kind))
        return self._kept.keep(whole.drop("_file", "_pos"), level_for(count))

    def _arriving(self, verdicts: DataFrame, outcomes: tuple[str, ...]) -> DataFrame:
        """Return the incoming rows with some outcomes, as the table gets them."""
        wanted = verdicts.where(F.col("outcome").isin(*outcomes)).select(
            F.col("winner").alias(SEQUENCE), _as_one()
        )
        rows = self.rows.join(sent_if_few(wanted, self.read), SEQUENCE)
        if self.rules.deleted_column:
            rows = rows.withColumn(self.rules.deleted_column, F.lit(False))
        return rows

    def _written(self, verdicts: DataFrame, last_rows: DataFrame | None) -> DataFrame:
        """Return the rows that the table gets."""
        names = [*(quoted(column.name) for column in self.fields), HASH_COLUMN]
        rows = self._arriving(verdicts, WRITTEN).select(*names)
        if last_rows is not None and self.rules.deleted_column:
            rows = rows.unionByName(last_rows.select(*names))
        return rows

    def _changes(self, verdicts: DataFrame, last_rows: DataFrame | None) -> DataFrame:
        """Return the rows of the change log."""
        names = [quoted(column.name) for column in self.fields]
        order = [_of_verdict("final").alias(ORDER)] if self.rules.order_by else []
        logged = tuple(outcome for outcome in LOGGED if outcome not in GONE)
        rows = self._arriving(verdicts, logged).select(
            *names,
            _of_verdict("outcome").alias(OP),
            _of_verdict("s_hash").alias(HASH_BEFORE),
            F.col(HASH_COLUMN).alias(HASH_AFTER),
            *order,
            F.col(SEQUENCE).alias(ROW),
        )
        if last_rows is not None:
            gone = last_rows.select(
                *names,
                F.lit("delete").alias(OP),
                F.col(HASH_COLUMN).alias(HASH_BEFORE),
                F.lit(None).cast("bigint").alias(HASH_AFTER),
                *order,
                _of_verdict("winner").alias(ROW),
            )
            rows = rows.unionByName(gone)
        return rows

    def _rejected(self) -> DataFrame:
        """Return the rows that cannot be loaded, as the quarantine keeps them."""
        missing = F.concat_ws(
            ", ", *(F.when(F.col(quoted(name)).isNull(), F.lit(f'"{name}"')) for name in self.rules.key)
        )
        is_keyless = missing != ""
        rule = F.when(is_keyless, NO_KEY).otherwise(NO_ORDER)
        column = F.when(is_keyless, missing).otherwise(F.lit(f'"{self.rules.dates}"'))
        reason = F.concat(F.lit("the "), rule, F.lit(" column "), column, F.lit(" has no value"))
        row = payload((c.name, F.col(quoted(c.name)), c.type) for c in self.fields)
        keyless = F.struct(F.array(rule).alias("rules"), reason.alias("reason"), row.alias("payload"))
        rows = self.rejected_rows.withColumn(BAD, F.coalesce(F.col(BAD), keyless))
        # As a step of its own: coalesce(1) would let one task alone look for them.
        return told_rows(rows, F.col(SEQUENCE)).repartition(1)

    def _sql(self, text: str, **frames: Any) -> DataFrame:
        return self.engine.spark.sql(text, None, **frames)


def sent_if_few(found: DataFrame, count: int) -> DataFrame:
    """Return what was found about so many rows, with the hint to send it to every executor if they are few.

    The rows of the table or the batch then stay where they are. Of many, the driver and each executor would
    have all in memory: Spark chooses how to join them.
    """
    return F.broadcast(found) if count <= BROADCAST_ROWS else found


def level_for(count: int) -> StorageLevel:
    """Return where so many whole rows are kept."""
    return StorageLevel.MEMORY_AND_DISK if count <= BROADCAST_ROWS else StorageLevel.DISK_ONLY


def _or_nothing(name: str | None) -> Expression:
    return F.col(quoted(name)) if name is not None else F.lit(None).cast("bigint")


def _as_one() -> Expression:
    """Return what the verdicts say of a row as one column: the table's own may have any name."""
    return F.struct("winner", "outcome", "s_hash", "final").alias(_VERDICT)


def _of_verdict(name: str) -> Expression:
    return F.col(_VERDICT).getField(name)
