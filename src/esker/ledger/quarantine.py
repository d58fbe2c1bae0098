"""The quarantine `<table>__quarantine`: rows that could not be loaded, with the reason.

It is filled from the outbox, like the change log: a row is there exactly once, and only if the batch it
came with was published. Nothing is ever taken out: what becomes of a row later is written behind it, as
a row with a `resolution`, by the publish that loads it or leaves it for good.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.ledger.side_table import QUARANTINE, OpenSide, Stamp
from esker.project.types import Array, Column, Plain

QUARANTINE_COLUMNS = (
    Column("changeset", Plain("bigint"), required=True, doc="The changeset that it came with"),
    Column("pipeline", Plain("string"), required=True),
    Column("run", Plain("string"), required=True),
    Column("batch", Plain("string"), required=True),
    Column("row", Plain("bigint"), required=True, doc="Place of the row in its batch"),
    Column("origin", Plain("string"), doc="The file that it stood in"),
    Column("rules", Array(Plain("string")), doc="The rules that it broke"),
    Column("reason", Plain("string"), required=True, doc="Why, in words"),
    Column("payload", Plain("string"), doc="The row, as JSON"),
    Column("quarantined_at", Plain("timestamp"), required=True),
    Column("resolution", Plain("string"), doc="replayed or discarded: tells what became of an earlier row"),
    Column("of_changeset", Plain("bigint"), doc="The changeset of that earlier row"),
    Column("of_row", Plain("bigint"), doc="Its place in its batch"),
)
REPLAYED, DISCARDED = "replayed", "discarded"


def open_rows(quarantine: DataFrame) -> DataFrame:
    """Return the rows of a quarantine that still wait for somebody."""
    if "resolution" not in quarantine.columns:
        return quarantine  # made before rows could be replayed
    done = quarantine.where(F.col("resolution").isNotNull())
    done = done.select("of_changeset", "of_row").distinct()
    same = [F.col("changeset") == F.col("of_changeset"), F.col("row") == F.col("of_row")]
    waiting = quarantine.where(F.col("resolution").isNull()).drop("resolution", "of_changeset", "of_row")
    return waiting.join(done, same, "left_anti")


def resolutions(rows: DataFrame, resolution: str) -> DataFrame:
    """Return what is written behind rows of a quarantine when they are replayed or discarded."""
    return rows.select(
        F.col("row"),
        F.col("origin"),
        F.col("rules"),
        F.col("reason"),
        F.lit(None).cast("string").alias("payload"),
        F.lit(resolution).alias("resolution"),
        F.col("changeset").alias("of_changeset"),
        F.col("row").alias("of_row"),
    )


class Quarantine(OpenSide):
    """The quarantine of one table. Rows that are staged have row, origin, rules, reason and payload."""

    property = QUARANTINE

    def shared(self, stamp: Stamp) -> dict[str, Any]:
        return {
            "changeset": stamp.changeset,
            "pipeline": stamp.pipeline,
            "run": stamp.run,
            "batch": stamp.batch,
            "quarantined_at": stamp.moment,
        }
