"""One batch on its way into a table: what a mode is given, and rows staged as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from esker.contracts.check import BAD, fit
from esker.engine.failures import explained
from esker.engine.iceberg.stage import StagedFiles, discard, stage
from esker.engine.iceberg.table import TableId
from esker.engine.machine import cores
from esker.engine.progress import watched
from esker.engine.session import Engine
from esker.errors import BadRows, Held
from esker.events import Step
from esker.ledger.change_log import ChangeLog
from esker.ledger.quarantine import Quarantine
from esker.load.counts import RowCounts
from esker.load.guards import Guards
from esker.load.memory import Memory
from esker.load.publish import Change
from esker.load.unknown import NEW_COLUMN, UNKNOWN, forgiven
from esker.project.pipelines import Pipeline
from esker.project.types import Column
from esker.sources import MALFORMED, ORIGIN, Span, Weight
from esker.sources.source import Command

_TARGET_BYTES = 128 * 1024 * 1024


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


@dataclass(frozen=True)
class Loading:
    """What all batches of one run of one pipeline share."""

    engine: Engine
    name: str
    pipeline: Pipeline
    table: TableId
    run: str
    log: ChangeLog | None = None
    quarantine: Callable[[], Quarantine] | None = None
    """Opens the quarantine, and makes it when there is none."""
    memory: Memory | None = None
    span: Span | None = None
    """What of the source is loaded again; None in a normal run."""
    reached: Callable[[Step], None] = lambda step: None
    connection: duckdb.DuckDBPyConnection = field(default_factory=lambda: _duckdb().cursor())


@dataclass(frozen=True)
class StagedRows(Change):
    """Rows that are staged as files of the table, whatever the table holds. Modes say how they enter it."""

    files: StagedFiles

    @property
    def columns(self) -> tuple[str, int]:
        return self.files.table_uuid, self.files.schema_id

    @property
    def counts(self) -> RowCounts:
        return RowCounts(read=self.files.rows, inserted=self.files.rows)


def stage_rows(loading: Loading, batch: Batch) -> StagedFiles:
    """Check a batch's rows and write them as files of the table, in one pass.

    Raises BadRows when a row does not fit; the files are removed then.
    """
    engine = loading.engine
    frame = batch.frame()
    keep = (UNKNOWN,) if UNKNOWN in frame.columns else ()
    checked = forgiven(fit(frame, batch.columns, malformed=MALFORMED, origin=ORIGIN, keep=keep))
    seen = None
    rows = checked
    if BAD in checked.columns:
        # Two examples are enough to see what is wrong, and cost no memory.
        seen = Observation()
        counted = {"read": F.count(F.lit(1)), "bad": F.count(BAD), "first": F.min(BAD), "last": F.max(BAD)}
        rows = checked.observe(seen, *(metric.alias(name) for name, metric in counted.items()))
        # Bad rows are counted, then left out: a null in a required column would end the whole job.
        rows = rows.where(F.col(BAD).isNull()).drop(BAD)
    if keep:
        rows = rows.where(F.col(UNKNOWN).isNull()).drop(UNKNOWN)
    with explained("cannot load the rows", engine.log, reads_source=True), watched(engine, batch.progress):
        staged = stage(engine, loading.table, _packed(rows, engine, batch.bytes), batch.id)
    counts = seen.get if seen is not None else {}
    if counts.get("bad"):
        discard(engine, staged)
        examples = list(dict.fromkeys((counts["first"], counts["last"])))
        raise BadRows(loading.name, counts["bad"], counts["read"], examples)
    # The files tell how many rows there are; a count made on the way may count a repeated task twice.
    return staged


def discarded_rows(batch: Batch) -> DataFrame | None:
    """Return a batch's rows with more columns than the table, as the quarantine keeps them, if any."""
    if not batch.has_unknown:
        return None
    frame = batch.frame()
    rows = frame.withColumn("row", F.monotonically_increasing_id()).where(F.col(UNKNOWN).isNotNull())
    if rows.isEmpty():
        return None
    return rows.select(
        "row",
        (F.col(ORIGIN) if ORIGIN in frame.columns else F.lit(None).cast("string")).alias("origin"),
        F.array(F.lit(NEW_COLUMN)).alias("rules"),
        f"{UNKNOWN}.reason",
        f"{UNKNOWN}.payload",
    ).coalesce(1)


def check_staged(loading: Loading, staged: StagedFiles, check: Callable[[], None]) -> None:
    """Call a check on staged files that raises Held; they are removed then, before any commit names them."""
    try:
        check()
    except Held:
        discard(loading.engine, staged)
        raise


def _packed(frame: DataFrame, engine: Engine, source_bytes: int) -> DataFrame:
    """Use no more tasks than the bytes are worth: each task writes a file of its own."""
    wanted = max(cores(engine.project.spark.master), -(-source_bytes // _TARGET_BYTES))
    return frame.coalesce(wanted)
