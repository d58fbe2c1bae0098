"""The places of rows, as Spark found them: positions in data files of a snapshot."""

from __future__ import annotations

from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import snapshot_frame
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine


def placed_rows(engine: Engine, table: TableId, attempt: Attempt) -> DataFrame:
    """Return the rows of the snapshot that an attempt compares with, beside `_file` and `_pos`."""
    if attempt.current is None:
        return engine.spark.table(table.sql).where("false").select("*", "_file", "_pos")
    if attempt.is_as_written:
        found = snapshot_frame(engine.spark, table.sql, attempt.current)
    else:
        # A snapshot has the columns of its time: later ones would be missing, renamed ones unknown. Then
        # the table itself is read; if it moves on meanwhile, the swap fails and all is done again.
        found = engine.spark.read.table(table.sql)
    return found.select("*", "_file", "_pos")


def positions(attempt: Attempt, places: DataFrame, file: str, position: str) -> dict[FileEntry, BitMap64]:
    """Return the positions in a frame by file. The columns are named.

    Raises SwapFailed when a file is not of the snapshot that the attempt compares with.
    """
    files = {entry.path: entry for entry in attempt.files.data}
    # In parts: all positions of a large file at once would be a list of millions.
    part = F.shiftright(F.col(position), 16)
    grouped = places.groupBy(F.col(file).alias("file"), part).agg(F.collect_list(position).alias("positions"))
    found: dict[FileEntry, BitMap64] = {}
    for row in grouped.toLocalIterator():
        entry = files.get(row["file"])
        if entry is None:
            raise SwapFailed("CommitFailedException", "the table moved while it was read")
        found.setdefault(entry, BitMap64()).update(row["positions"])
    return found
