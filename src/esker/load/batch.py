"""One batch on its way into a table: read, checked and staged, not yet visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from esker.contracts.check import BAD, fit
from esker.engine.failures import explained
from esker.engine.iceberg.stage import StagedFiles, discard, stage
from esker.engine.iceberg.table import TableId
from esker.engine.machine import cores
from esker.engine.progress import watched
from esker.engine.session import Engine
from esker.errors import BadRows
from esker.project.types import Column
from esker.sources import MALFORMED, ORIGIN

_TARGET_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class StagedBatch:
    """The files of a batch, and how many rows were read for it."""

    files: StagedFiles
    rows_read: int


def stage_batch(
    engine: Engine,
    table: TableId,
    frame: DataFrame,
    columns: tuple[Column, ...],
    *,
    pipeline: str,
    batch: str,
    source_bytes: int,
    progress: Callable[[int, int], None],
) -> StagedBatch:
    """Check a frame's rows and write them as files of the table, in one pass.

    Raises BadRows when a row does not fit; the files are removed then.
    """
    checked = fit(frame, columns, malformed=MALFORMED, origin=ORIGIN)
    counted = {"read": F.count(F.lit(1))}
    if BAD in checked.columns:
        # Two examples are enough to see what is wrong, and cost no memory.
        counted |= {"bad": F.count(BAD), "first": F.min(BAD), "last": F.max(BAD)}
    seen = Observation()
    rows = checked.observe(seen, *(metric.alias(name) for name, metric in counted.items()))
    if BAD in checked.columns:
        # Bad rows are counted, then left out: a null in a required column would end the whole job.
        rows = rows.where(F.col(BAD).isNull()).drop(BAD)
    with explained("cannot load the rows", engine.log, reads_source=True), watched(engine, progress):
        staged = stage(engine, table, _packed(rows, engine, source_bytes), batch)
    counts = seen.get
    if counts.get("bad"):
        discard(engine, staged)
        examples = list(dict.fromkeys((counts["first"], counts["last"])))
        raise BadRows(pipeline, counts["bad"], counts["read"], examples)
    # The files tell how many rows there are; a count made on the way may count a repeated task twice.
    return StagedBatch(staged, staged.rows)


def _packed(frame: DataFrame, engine: Engine, source_bytes: int) -> DataFrame:
    """Use no more tasks than the bytes are worth: each task writes a file of its own."""
    wanted = max(cores(engine.project.spark.master), -(-source_bytes // _TARGET_BYTES))
    return frame.coalesce(wanted)
