"""Rows of data files that are deleted, by their position, written as new deletes.

Format version 2 has files of (path, position), one for all data files of a partition here. Every scan
opens all of them, so a commit that finds many small ones takes them into its own. Format version 3 has
deletion vectors, one per data file, each of which holds every earlier delete of it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyroaring import BitMap64

from esker.engine.iceberg.content_file import WrittenFile, stored_file, written_file
from esker.engine.iceberg.deleted import deleted_positions, positions_in
from esker.engine.iceberg.manifests import FileEntry, LiveFiles, Partition
from esker.engine.iceberg.metadata import Metadata
from esker.engine.iceberg.metrics import metrics
from esker.engine.iceberg.schema import with_id
from esker.engine.iceberg.write import Locate, write_parquet

_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_COLUMNS = pa.schema(
    [
        with_id("file_path", pa.string(), _PATH_ID, nullable=False),
        with_id("pos", pa.int64(), _POSITION_ID, nullable=False),
    ]
)
_WHOLE_BOUNDS = {"write.metadata.metrics.default": "full"}
"""Readers tell by the bounds of `file_path` which data files a delete file concerns: never cut short."""
_MANY = 10
"""So many small delete files of a partition are taken into the next one."""
_MOST = 50
"""No more are taken in at a time: somebody else may have left thousands."""
_POOL = ThreadPoolExecutor(16, thread_name_prefix="esker-delete-files")
_SMALL = 100_000
"""A file with more deletes is left alone: otherwise every tenth commit would write all deletes anew."""
_MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"


@dataclass(frozen=True)
class StagedDeletes:
    """Delete files that belong to no snapshot yet, and those that they take the place of."""

    rows: int = 0
    bytes: int = 0
    added: tuple[WrittenFile, ...] = field(default=(), repr=False, compare=False)
    removed: tuple[WrittenFile, ...] = field(default=(), repr=False, compare=False)


def write_deletes(
    metadata: Metadata, locate: Locate, files: LiveFiles, doomed: Mapping[FileEntry, BitMap64]
) -> StagedDeletes:
    """Write the deletes of positions, for one commit on exactly these files."""
    if not doomed:
        return StagedDeletes()
    if metadata.format_version >= 3:
        return _write_vectors(metadata, locate, files, doomed)
    return _write_positions(metadata, locate, files, doomed)


def _write_positions(
    metadata: Metadata, locate: Locate, files: LiveFiles, doomed: Mapping[FileEntry, BitMap64]
) -> StagedDeletes:
    # A delete file belongs to one spec and partition, those of its data files, not the table's newest.
    groups: dict[Partition, list[FileEntry]] = defaultdict(list)
    for file in doomed:
        groups[file.spec_id, file.partition].append(file)
    added, removed, size = [], [], 0
    locations = locate([(f"{uuid4()}-deletes.parquet", ()) for _ in groups])
    for location, (partition, members) in zip(locations, groups.items(), strict=True):
        gone = {file.path: doomed[file] for file in members}
        if taken := _to_take_in(files, partition):
            gone = _with_those_of(taken, files, gone)
            removed += [stored_file(metadata.specs[delete.spec_id], delete) for delete in taken]
        content = _listed(gone)
        written, footer = write_parquet(files.store, location, content, "zstd", is_plain=True)
        added.append(
            _delete_file(
                metadata,
                members[0],
                location=location,
                size=written,
                records=len(content),
                facts=metrics(footer, _COLUMNS, _WHOLE_BOUNDS, content),
            )
        )
        size += written
    rows = sum(len(positions) for positions in doomed.values())
    return StagedDeletes(rows, size, tuple(added), tuple(removed))


def _listed(gone: Mapping[str, BitMap64]) -> pa.Table:
    """Return positions by path as a delete file holds them, in order."""
    paths = sorted(gone)
    counts = [len(gone[path]) for path in paths]
    # Each path once, and numbers: millions of long texts would be in memory otherwise.
    numbers = [pa.repeat(pa.scalar(index, pa.int32()), count) for index, count in enumerate(counts)]
    which = pa.DictionaryArray.from_arrays(pa.concat_arrays(numbers), pa.array(paths, pa.string()))
    positions = [
        pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(gone[path].to_array())])
        for path, count in zip(paths, counts, strict=True)
    ]
    field = _COLUMNS.field(0).with_type(which.type)
    return pa.table([which, pa.concat_arrays(positions)], schema=_COLUMNS.set(0, field))


def _to_take_in(files: LiveFiles, partition: Partition) -> list[FileEntry]:
    """Return small delete files of a partition, if they are many."""
    small = [
        delete
        for delete in files.deletes_in(partition)
        if delete.records < _SMALL and delete.format == "parquet"
    ]
    return small[:_MOST] if len(small) >= _MANY else []


def _with_those_of(
    deletes: list[FileEntry], files: LiveFiles, gone: Mapping[str, BitMap64]
) -> dict[str, BitMap64]:
    """Return positions together with those that delete files name, as far as their data files live."""
    together = dict(gone)
    read = _POOL.map(lambda delete: positions_in(files.store, delete.path), deletes)
    for delete, found in zip(deletes, read, strict=True):
        for path, positions in found.items():
            # An older delete is none of a file that came back under its name.
            if files.sequences.get(path, delete.sequence + 1) <= delete.sequence:
                together[path] = together.get(path, BitMap64()) | positions
    return together


def _write_vectors(
    metadata: Metadata, locate: Locate, files: LiveFiles, doomed: Mapping[FileEntry, BitMap64]
) -> StagedDeletes:
    [location] = locate([(f"{uuid4()}-deletes.puffin", ())])
    # Readers of a vector ignore all other deletes of the file: it must hold them too.
    vectors = {file: doomed[file] | deleted_positions(files, file) for file in doomed}
    content, places = _puffin({file.path: vector for file, vector in vectors.items()})
    files.store.write_bytes(location, content)
    added, removed = [], []
    for file, vector in vectors.items():
        offset, length = places[file.path]
        added.append(
            _delete_file(
                metadata,
                file,
                location=location,
                size=len(content),
                records=len(vector),
                format="puffin",
                facts={
                    "referenced-data-file": file.path,
                    "content-offset": offset,
                    "content-size-in-bytes": length,
                },
            )
        )
        removed += [
            stored_file(metadata.specs[delete.spec_id], delete)
            for delete in files.deletes_of(file)
            if delete.is_vector or delete.reference == file.path
        ]
    return StagedDeletes(
        sum(len(vector) for vector in doomed.values()), len(content), tuple(added), tuple(removed)
    )


def _delete_file(metadata: Metadata, beside: FileEntry, **facts: Any) -> WrittenFile:
    """Return a delete file in the partition of another file, under that one's own spec."""
    values = tuple(value for _, value in beside.partition)
    spec = metadata.specs[beside.spec_id]
    return written_file(spec, partition=values, content="position-deletes", **facts)


def _puffin(vectors: Mapping[str, BitMap64]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return a Puffin file of deletion vectors, and where in it each data file's vector is."""
    content = bytearray(_MAGIC)
    blobs = []
    places = {}
    for path, vector in vectors.items():
        body = _VECTOR_MAGIC + vector.serialize()
        blob = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        places[path] = len(content), len(blob)
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(vector))},
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "esker"}}).encode()
    content += _MAGIC + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0" + _MAGIC
    return bytes(content), places
