"""Rows of data files that are deleted in a snapshot, by their position. Needs no Java."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc
from pyroaring import BitMap64

from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.engine.store import Store


def deleted_positions(files: LiveFiles, file: FileEntry) -> BitMap64:
    """Return the positions of a data file that are deleted in a snapshot."""
    return positions_of(files.store, file.path, files.deletes_of(file))


def positions_of(store: Store, path: str, deletes: Iterable[FileEntry]) -> BitMap64:
    """Return the positions of a data file that vectors and files of position deletes name."""
    positions = BitMap64()
    for delete in deletes:
        if delete.is_vector:
            positions |= _vector(store, delete.path, delete.offset or 0, delete.length or 0)
        else:
            positions |= positions_in(store, delete.path, delete.format).get(path, BitMap64())
    return positions


@lru_cache(maxsize=1024)
def _vector(store: Store, path: str, offset: int, length: int) -> BitMap64:
    return BitMap64.deserialize(store.read_bytes(path, offset, length)[8:-4])


@lru_cache(maxsize=256)
def positions_in(store: Store, path: str, format: str = "parquet") -> dict[str, BitMap64]:
    """Return what a file of position deletes names, by data file."""
    rows = _listed(io.BytesIO(store.read_bytes(path)), format)
    found: dict[str, BitMap64] = defaultdict(BitMap64)
    for batch in rows.to_batches():
        files = batch.column("file_path").dictionary_encode()
        order = pc.sort_indices(files.indices)
        positions = batch.column("pos").take(order)
        runs = pc.run_end_encode(files.indices.take(order))
        start = 0
        for index, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            found[files.dictionary[index].as_py()] |= BitMap64(positions[start:end].to_pylist())
            start = end
    return dict(found)


def _listed(stream: io.BytesIO, format: str) -> pa.Table:
    """Return paths and positions as a file of position deletes holds them."""
    names = ["file_path", "pos"]
    match format:
        case "avro":
            rows: list[Any] = list(fastavro.reader(stream))
            return pa.Table.from_pylist(rows, pa.schema({"file_path": pa.string(), "pos": pa.int64()}))
        case "orc":
            return orc.read_table(stream, columns=names)
        case _:
            return pq.read_table(stream, columns=names)
