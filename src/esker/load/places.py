"""The places of rows, as Spark found them: positions in data files of a snapshot."""

from __future__ import annotations

from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.manifests import FileEntry


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
