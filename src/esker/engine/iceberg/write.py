"""Write rows as data files of a table from this process, without a Spark job and without a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.iceberg.content_file import WrittenFile, written_file
from esker.engine.iceberg.java import iceberg, text_list
from esker.engine.iceberg.metadata import Metadata
from esker.engine.iceberg.metrics import metrics, split_offsets, unbounded
from esker.engine.iceberg.partition import split
from esker.engine.iceberg.schema import NAME_MAPPING
from esker.engine.iceberg.table_files import TableFiles
from esker.engine.store import Store

_BLOOM_FILTER = "write.parquet.bloom-filter-enabled.column."
_FALSE_POSITIVES = "write.parquet.bloom-filter-fpp.column."
TARGET_SIZE = "write.target-file-size-bytes"
_LARGEST = 512 * 2**20
"""Bytes of a file where the table says nothing, as Iceberg has it, or more: until it is written, this process
holds it in memory."""
_UNSORTED = 0
Locate = Callable[[Sequence[tuple[str, tuple[Any, ...]]]], list[str]]
"""Returns where new files are to lie, by their names and the values of their partitions."""
_ROW_GROUP = 20_000
"""Rows of a row group: a lookup of few keys reads only the groups that can hold them."""
_GROUP_BYTES = 64 * 2**20
"""Bytes of a row group, before they are compressed: of wide rows it has fewer."""


def write_files(
    metadata: Metadata, locate: Locate, store: Store, rows: pa.Table, stem: str
) -> tuple[list[WrittenFile], int]:
    """Write rows, per partition one file or, of many rows, several; return the files and their bytes.

    `locate` tells where files are to lie. `stem` begins their names and is unique to this call.
    """
    spec, schema, properties = metadata.spec, metadata.fields, metadata.properties
    codec = properties.get("write.parquet.compression-codec", "zstd")
    target = target_size(properties)
    parts = split(rows, spec)
    stems = [f"{stem}-{number}" if number else stem for number in range(len(parts))]
    firsts = locate([(f"{name}.parquet", values) for name, (values, _) in zip(stems, parts, strict=True)])
    files, size = [], 0
    for name, first, (values, whole) in zip(stems, firsts, parts, strict=True):
        pieces = _rolled(whole.cast(schema.arrow), codec, target, _bloom_filters(properties, whole))
        for number, (part, content, footer) in enumerate(pieces):
            location = locate([(f"{name}-part{number}.parquet", values)])[0] if number else first
            store.write_bytes(location, content)
            written = int(content.size)
            facts = metrics(footer, schema.arrow, properties, part) | {
                "split-offsets": split_offsets(footer),
                "sort-order-id": _UNSORTED,
            }
            files.append(
                written_file(
                    spec, location=location, size=written, records=len(part), partition=values, facts=facts
                )
            )
            size += written
    return files, size


def target_size(properties: Mapping[str, str]) -> int:
    """Return with how many bytes a file ends, by its table's properties."""
    return min(int(properties.get(TARGET_SIZE, _LARGEST)), _LARGEST)


def _bloom_filters(properties: Mapping[str, str], rows: pa.Table) -> dict[str, Any]:
    """Return the Bloom filters that a table's properties ask for, as Arrow takes them."""
    return {
        name: {"ndv": max(len(rows), 1), "fpp": float(properties.get(f"{_FALSE_POSITIVES}{name}", 0.01))}
        for key, value in properties.items()
        if (name := key.removeprefix(_BLOOM_FILTER)) != key and value == "true" and name in rows.column_names
    }


def adopt_files(table: Any, jvm: Any, store: Store, files: Sequence[tuple[str, int]]) -> list[Any]:
    """Return Iceberg's objects for Parquet files of an unpartitioned table, from their footers.

    Columns of files without field ids are known by the names that the table's mapping gives them.
    """
    config = iceberg(jvm, "MetricsConfig").forTable(table)
    names = table.properties().get(NAME_MAPPING)
    mapping = iceberg(jvm, "mapping.NameMappingParser").fromJson(names) if names is not None else None
    parquet, reader = iceberg(jvm, "parquet.ParquetUtil"), TableFiles(store)

    def measured(location: str) -> Any:
        found = parquet.fileMetrics(table.io().newInputFile(location), config, mapping)
        with reader.open(location) as stream:
            footer = pq.ParquetFile(stream).metadata
        for leaf in unbounded(footer):
            number = leaf.id
            if number == -1 and mapping is not None:
                named = mapping.find(text_list(jvm, leaf.names))
                number = named.id() if named is not None else -1
            # Iceberg gives the bounds of those row groups that have some.
            found.lowerBounds().remove(number)
            found.upperBounds().remove(number)
        return found

    return [
        iceberg(jvm, "DataFiles")
        .builder(table.spec())
        .withPath(location)
        .withFormat("parquet")
        .withFileSizeInBytes(size)
        .withMetrics(measured(location))
        .build()
        for location, size in files
    ]


def _rolled(
    rows: pa.Table, codec: str, target: int, filters: Mapping[str, Any]
) -> Iterator[tuple[pa.Table, pa.Buffer, pq.FileMetaData]]:
    """Yield rows as Parquet files that end with the row group with which they reach a size.

    None is larger than the largest that this process holds, but for a row that alone is.
    """
    start, size = 0, max(1, min(_ROW_GROUP, len(rows) * _GROUP_BYTES // max(rows.nbytes, 1)))
    while start < len(rows):
        sink = pa.BufferOutputStream()
        footers: list[pq.FileMetaData] = []
        end = start
        with pq.ParquetWriter(
            sink, rows.schema, metadata_collector=footers, **_options(codec, filters)
        ) as writer:
            while end < len(rows) and (end == start or sink.tell() < target):
                group = rows.slice(end, size)
                if end > start and sink.tell() + group.nbytes > _LARGEST:
                    break
                writer.write_table(group, row_group_size=size)
                end += len(group)
        yield rows.slice(start, end - start), sink.getvalue(), footers[0]
        start = end


def _options(codec: str, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return how Parquet files are written, as Arrow takes it."""
    return {
        "compression": "NONE" if codec == "uncompressed" else codec,
        "bloom_filter_options": dict(filters) if filters else None,
    }


def write_parquet(
    store: Store,
    location: str,
    rows: pa.Table,
    codec: str,
    *,
    is_plain: bool = False,
) -> tuple[int, pq.FileMetaData]:
    """Write rows as a Parquet file; return its bytes and its footer.

    Of a plain file, readers cannot tell which of Arrow's own types its values had here.
    """
    sink = pa.BufferOutputStream()
    footers: list[pq.FileMetaData] = []
    pq.write_table(
        rows,
        sink,
        row_group_size=_ROW_GROUP,
        metadata_collector=footers,
        store_schema=not is_plain,
        **_options(codec, {}),
    )
    buffer = sink.getvalue()
    store.write_bytes(location, buffer)
    return int(buffer.size), footers[0]
