"""One batch on its way into a table: what a mode is given, and rows staged as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache

import duckdb
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from esker.contracts.check import BAD, Checked, check
from esker.contracts.rules import RowRules, Tally
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.stage import StagedFiles, discard, stage
from esker.engine.iceberg.table import TableId
from esker.engine.kept import KeptFrames
from esker.engine.machine import cores
from esker.engine.progress import watched
from esker.engine.session import Engine
from esker.engine.sieve import Sieve
from esker.engine.tasks import tasks_of
from esker.errors import BadRows, Held, RulesBroken
from esker.events import Step
from esker.ledger.change_log import ChangeLog
from esker.ledger.quality import Measure
from esker.ledger.quarantine import Quarantine
from esker.ledger.side_table import QUARANTINE, Stamp
from esker.load.counts import RowCounts
from esker.load.guards import Guards
from esker.load.memory import Memory
from esker.load.publish import Change, Commit, Made
from esker.load.rejected import (
    SIDE_COLUMNS,
    told_rows,
    told_with_origin,
    with_resolved,
)
from esker.load.unknown import UNKNOWN, forgiven
from esker.project.pipelines import Pipeline
from esker.project.types import Column, quoted
from esker.sources import ORIGIN, Span, Weight
from esker.sources.source import Command

_TARGET_BYTES = 128 * 1024 * 1024
ROW_NUMBER = "_esker_row"
_SHORT = 2_000
"""Bytes of a bad row that may come to the driver with others."""
_BYTES_OF_A_VALUE = 16
_MOST_COLLECTED = 200_000
_WORTH_A_TASK = 25_000
_EXAMPLES = 2
_ALL = "_esker_all"
"""Name of the count of all rows, beside those of rules."""


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """The one DuckDB of this process: opening another takes longer than comparing a small batch."""
    return duckdb.connect()


@dataclass(frozen=True)
class Batch:
    """The rows of one slice, not yet checked."""

    id: str
    """Names its staging; unique to this try."""
    slice: str
    """Names the slice, in every try."""
    frame: Callable[[], DataFrame]
    """Reads them with Spark."""
    arrow: pa.Table | None
    """The rows, when they are in this process already."""
    columns: tuple[Column, ...]
    """The table's columns, without Esker's own."""
    sent: tuple[str, ...]
    """The columns that the source sends."""
    bytes: int
    """As they lie in the source, perhaps packed."""
    weight: Weight
    progress: Callable[[int, int], None]
    until: datetime | None
    """The moment up to which the source was read, if it has one."""
    guards: Guards
    has_unknown: bool = False
    """Rows may carry columns that the table lacks: UNKNOWN stands beside them."""
    command: Command | None = None
    """Set for rows of a statement."""
    is_repair: bool = False
    """What is stored may be newer, and wins against rows that are not."""


@dataclass(frozen=True)
class Loading:
    """What all batches of one run of one pipeline share."""

    engine: Engine
    name: str
    pipeline: Pipeline
    table: TableId
    run: str
    kept: KeptFrames
    """Rows that are kept while a batch is loaded."""
    log: ChangeLog | None = None
    quarantine: Callable[[], Quarantine] | None = None
    """Opens the quarantine, and makes it when there is none."""
    memory: Memory | None = None
    rules: RowRules = field(default_factory=RowRules)
    """What the rows are checked by."""
    span: Span | None = None
    """What of the source is loaded again; None in a normal run."""
    resolved: DataFrame | None = None
    """What is written into the quarantine with the batch: rows of it are loaded again."""
    reached: Callable[[Step], None] = lambda step: None
    connection: duckdb.DuckDBPyConnection = field(default_factory=lambda: _duckdb().cursor())

    def rejects(self, batch: Batch) -> bool:
        """Tell whether bad rows go to the quarantine. Whoever writes a statement is told of them instead."""
        return self.pipeline.quarantines and batch.command is None


@dataclass(frozen=True)
class Staged:
    """Rows that are staged as files of the table, and those that go to the quarantine instead."""

    files: StagedFiles
    tally: Tally
    rejected: DataFrame | None = None
    reads_again: bool = False
    """The rejected rows are read from the source once more."""

    def check(self, loading: Loading, check: Callable[[], None]) -> None:
        """Call a check that raises Held; the files are removed then, before any commit names them."""
        try:
            check()
        except (Held, RulesBroken):
            discard(loading.engine, self.files)
            raise


@dataclass(frozen=True)
class StagedRows(Change):
    """Staged rows on their way, whatever the table holds. Modes say how they enter it."""

    staged: Staged
    loading: Loading
    slice: str

    @property
    def files(self) -> StagedFiles:
        return self.staged.files

    @property
    def columns(self) -> tuple[str, int]:
        return self.files.table_uuid, self.files.schema_id

    @property
    def reads_again(self) -> bool:
        return self.staged.reads_again

    def made(self, commit: Commit, changeset: int) -> Made:
        """Return the batch with its rejected rows, which are staged for the quarantine."""
        counts = RowCounts(read=self.files.rows, inserted=self.files.rows)
        resolved = self.loading.resolved
        owed_rows = with_resolved(self.staged.rejected, resolved)
        if owed_rows is None:
            return Made(commit, counts, self.files.bytes, measures=measures_of(self.staged.tally))
        assert self.loading.quarantine is not None
        quarantine = self.loading.quarantine()
        stamp = Stamp(self.loading.name, self.loading.run, self.slice, changeset, datetime.now(UTC))
        with explained("cannot read the rows", self.loading.engine.log, reads_source=True):
            staged = quarantine.stage(owed_rows, stamp)
        owed = {QUARANTINE: quarantine.side.listed(quarantine.opened.store, changeset, staged)}
        bad = staged.rows - (resolved.count() if resolved is not None else 0)
        counts += RowCounts(read=bad, quarantined=bad)
        return Made(commit, counts, self.files.bytes, owed, measures=measures_of(self.staged.tally))


def measures_of(tally: Tally) -> tuple[Measure, ...]:
    """Return what a quality history keeps of a batch's checks."""
    return tuple(Measure(name, "rule", count) for name, count in tally.figures().items())


def stage_rows(loading: Loading, batch: Batch) -> Staged:
    """Check a batch's rows and write the good ones as files of the table, in one pass.

    Raises BadRows when a row is bad and bad rows do not go to the quarantine; the files are removed then.
    """
    frame = batch.frame()
    keep = tuple(name for name in (UNKNOWN, ORIGIN) if name in frame.columns)
    numbered = frame.withColumn(ROW_NUMBER, F.monotonically_increasing_id())
    checked = check(numbered, batch.columns, loading.rules, SIDE_COLUMNS, (ROW_NUMBER,), keep)
    checked = replace(checked, rows=forgiven(checked.rows))
    can_leave_out = checked.can_be_bad or UNKNOWN in keep
    is_large = batch.bytes > _TARGET_BYTES
    reading = tasks_of(frame) if can_leave_out or is_large else None
    tasks = _fewer_tasks(loading.engine, batch, reading)
    if not can_leave_out:
        files = _stage_good(loading, batch, checked.rows, tasks)
        return Staged(files, Tally(files.rows))
    return _stage_checked(loading, batch, checked, tasks, reading or 1)


def _stage_checked(
    loading: Loading, batch: Batch, checked: Checked, tasks: int | None, reading: int
) -> Staged:
    """Stage the good rows. Bad ones are collected on the way if they are few, else read once more.

    `reading` is the number of parts that the rows are read in.
    """
    engine, rules = loading.engine, loading.rules
    bits = rules.columns if checked.can_be_bad else ()
    is_bad = rules.is_rejected() if checked.can_be_bad else F.lit(False)
    is_left_out = is_bad | F.col(UNKNOWN).isNotNull() if UNKNOWN in checked.rows.columns else is_bad
    rejects = loading.rejects(batch)
    most = _most_collected(engine, max(reading, _tasks(engine, batch.bytes))) if rejects else _EXAMPLES
    # As they are, and put into words when they are here: Java compiles the less of a method the more there is
    # of it.
    is_short = _size(checked.rows) <= _SHORT if rejects else F.lit(True)
    warning = rules.breaches(rejecting=False) if checked.can_be_bad else {}
    counted = {**warning, _ALL: F.lit(True)} if warning or not engine.is_alone else {}
    sieve = Sieve(engine)
    # Bad rows are left out before anything is written: a null in a required column would end the whole job.
    good = sieve.through(checked.rows, is_left_out, is_short, most, {**counted, BAD: is_bad})
    files = _stage_good(loading, batch, good, tasks)
    if (bad := sieve.count(BAD)) and not rejects:
        discard(engine, files)
        raise BadRows(loading.name, bad, files.rows + bad, _examples(_told(checked, sieve.rows())))
    broken = {rule.name: 0 for rule in rules.all} if checked.can_be_bad else {}
    if not sieve.left_out:
        broken |= _warned(loading, checked, sieve, files.rows)
        return Staged(files, Tally(files.rows, 0, broken))
    # Where more were counted than there are, Spark did some tasks twice.
    is_repeated = bool(counted) and sieve.count(_ALL) > files.rows + sieve.left_out
    found, figures = sieve.rows(), None
    if sieve.kept == sieve.left_out and not is_repeated:
        with explained("cannot read the rows", engine.log):
            figures = _counted(rules, bits, found)
    is_whole = figures is not None
    if figures is None:
        found = checked.rows.where(is_left_out)
        with explained("cannot read the rows", engine.log, reads_source=True):
            figures = _counted_again(rules, bits, found)
    left_out, by_rule = figures
    told = _told(checked, found)
    if not is_whole:
        # As a step of its own: coalesce would let few tasks look for them.
        told = told.repartition(max(1, left_out // _WORTH_A_TASK))
    read = files.rows + left_out  # the files tell how many good rows there are
    broken |= by_rule | _warned(loading, checked, sieve, read)
    return Staged(files, Tally(read, left_out, broken), told, reads_again=not is_whole)


def _warned(loading: Loading, checked: Checked, sieve: Sieve, rows: int) -> dict[str, int]:
    """Return how many of a batch's rows break which rule that rejects none.

    `rows` is how many there are. Where the sieve counted more, Spark did some tasks twice: a bound would
    hold a batch that keeps to it, so they are read once more.
    """
    by_rule = loading.rules.counts(rejecting=False) if checked.can_be_bad else {}
    if not by_rule or sieve.count(_ALL) == rows:
        return {name: sieve.count(name) for name in by_rule}
    with explained("cannot read the rows", loading.engine.log, reads_source=True):
        return dict(zip(by_rule, checked.rows.agg(*by_rule.values()).collect()[0], strict=True))


def _counted(rules: RowRules, bits: Sequence[str], rows: DataFrame) -> tuple[int, dict[str, int]] | None:
    """Return the number of bad rows that are here, and how many of them break which rule.

    None where Spark did some tasks twice, because what they had sent to others was lost. Which rows came
    twice cannot be told from their numbers: the source may have had another order the second time.
    """
    seen = to_arrow(rows.select(ROW_NUMBER, *bits))
    if len(seen.column(ROW_NUMBER).unique()) < len(seen):
        return None
    if not bits:
        return len(seen), {}
    tally = rules.tally({name: seen.column(name).to_pylist() for name in bits})
    return len(seen), {rule.name: tally[rule.name] for rule in rules.all if rule.rejects}


def _counted_again(rules: RowRules, bits: Sequence[str], rows: DataFrame) -> tuple[int, dict[str, int]]:
    """Read bad rows: return their number, and how many of them break which rule."""
    by_rule = rules.counts(rejecting=True) if bits else {}
    number, *counts = rows.agg(F.count(F.lit(1)), *by_rule.values()).collect()[0]
    return number, dict(zip(by_rule, counts, strict=True))


def _told(checked: Checked, rows: DataFrame) -> DataFrame:
    """Return bad rows as the quarantine keeps them."""
    return told_rows(forgiven(checked.told(rows)), F.col(ROW_NUMBER))


def _size(rows: DataFrame) -> Expression:
    """Return about how many bytes a row has on the driver: a number takes some there, even null."""
    found = F.lit(_BYTES_OF_A_VALUE * len(rows.columns))
    for column in rows.schema.fields:
        value = F.col(quoted(column.name))
        match column.dataType:
            case StringType() | BinaryType():
                found = found + F.coalesce(F.octet_length(value), F.lit(0))
            case StructType() | ArrayType() | MapType():
                found = found + F.coalesce(F.octet_length(value.cast("string")), F.lit(0))
    return found


def _stage_good(loading: Loading, batch: Batch, rows: DataFrame, tasks: int | None) -> StagedFiles:
    """Write rows, by so many tasks if there is a number: each task writes a file of its own."""
    engine = loading.engine
    rows = rows.select(*(quoted(column.name) for column in batch.columns))
    packed = rows if tasks is None else rows.coalesce(tasks)
    with explained("cannot load the rows", engine.log, reads_source=True), watched(engine, batch.progress):
        return stage(engine, loading.table, packed, batch.id)


def _examples(bad: DataFrame) -> list[str]:
    """Return what is wrong with two rows: enough to see it."""
    told = sorted(row[0] for row in bad.select(told_with_origin(F.col("reason"), F.col("origin"))).collect())
    return list(dict.fromkeys((told[0], told[-1])))


def _most_collected(engine: Engine, tasks: int) -> int:
    """Return how many bad rows of a task may come to the driver with its result.

    Some tasks have more than others: each may have three times its share.
    """
    most = min(_MOST_COLLECTED, engine.heap // 24 // _SHORT)
    return max(1, 3 * most // tasks)


def _fewer_tasks(engine: Engine, batch: Batch, reading: int | None) -> int | None:
    """Return by how many tasks a batch is written; None where those that read it are few enough.

    To put tasks together costs a copy of each row: Spark makes no one step of what stands before and behind.
    """
    wanted = _tasks(engine, batch.bytes)
    if batch.bytes <= _TARGET_BYTES:
        return wanted  # too small for that to matter
    return None if reading is not None and reading <= 1.5 * wanted else wanted


def _tasks(engine: Engine, source_bytes: int) -> int:
    return max(cores(engine.project.spark.master), -(-source_bytes // _TARGET_BYTES))
