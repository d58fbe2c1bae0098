"""What a record of loaded files says: the newest version of each file that counts. Needs no Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.view import View
from esker.errors import LoadedFilesDamaged
from esker.ledger.file_versions import FileVersion

_MOST_ROWS = 200_000
"""So many rows are read by this process; more are compared by Spark."""


def read_record(view: View, pipeline: str) -> pa.Table | None:
    """Return what a pipeline has written into a record of loaded files; None where Spark must read it.

    Raises FileNotFoundError when files have been expired meanwhile.
    """
    files = view.files
    if sum(file.records for file in files.data) > _MOST_ROWS or files.has_equality_deletes:
        return None
    if any(file.format != "parquet" for file in files.data):
        return None
    key = Keys(pa.table({"pipeline": [pipeline]}))
    found, _ = look_up(files, view.schema, key, ["batch", "previous", "path", "size", "modified"])
    return pa.concat_tables(hits.rows for hits in found) if found else None


def newest(history: pa.Table, batch: str, table: TableId) -> dict[str, FileVersion]:
    """Return the newest version of every file that the batches up to one have loaded.

    Raises LoadedFilesDamaged when a batch on the chain is not recorded in the table.
    """
    links = history.group_by(["batch", "previous"]).aggregate([])
    chain = chain_of(links, batch, table)
    place = pc.index_in(history["batch"], value_set=chain["batch"].combine_chunks())
    counted = history.append_column("place", place).filter(pc.is_valid(place))
    # The chain begins with the newest batch: the first version that is met is the newest.
    found: dict[str, FileVersion] = {}
    columns = counted.sort_by("place").select(["path", "size", "modified"]).to_pydict()
    for path, size, modified in zip(*columns.values(), strict=True):
        found.setdefault(path, FileVersion(path, size, modified))
    return found


def chain_of(links: pa.Table, batch: str, table: TableId) -> pa.Table:
    """Return the batches that count, each with its place: higher is newer. Raises LoadedFilesDamaged."""
    batches, previous = links["batch"].combine_chunks(), links["previous"].combine_chunks()
    # Places in the column instead of names: a chain of a million batches takes some megabytes.
    before = pc.index_in(previous, batches).to_pylist()
    chain: list[int] = []
    name: str | None = batch
    at: int | None = pc.index(batches, batch).as_py()
    while name is not None:
        if at is None or at < 0 or len(chain) == len(batches):
            raise LoadedFilesDamaged(str(table), name)
        chain.append(at)
        name, at = previous[at].as_py(), before[at]
    places = pa.array(range(len(chain), 0, -1), pa.int64())
    return pa.table({"batch": batches.take(pa.array(chain)), "place": places})
