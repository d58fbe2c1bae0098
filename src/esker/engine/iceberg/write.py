"""Write rows as data files of a table from this process, without a Spark job and without a commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.partition import partition_data, split
from esker.engine.iceberg.schema import FieldSchema
from esker.engine.store import Store

_ROW_GROUP = 20_000
"""Rows of a row group: a lookup of few keys reads only the groups that can hold them."""


def write_files(
    table: Any, jvm: Any, store: Store, schema: FieldSchema, rows: pa.Table, stem: str
) -> tuple[list[Any], int]:
    """Write rows, one file per partition; return Iceberg's objects for the files, and their bytes.

    `stem` begins the files' names and is unique to this call.
    """
    properties = table.properties()
    codec = properties.getOrDefault("write.parquet.compression-codec", "zstd")
    metrics = iceberg(jvm, "MetricsConfig").forTable(table)
    spec = table.spec()
    files, size = [], 0
    for number, (values, part) in enumerate(split(rows, spec, table.schema())):
        name = f"{stem}-{number}.parquet" if number else f"{stem}.parquet"
        builder = iceberg(jvm, "DataFiles").builder(spec)
        if values:
            partition = partition_data(spec, jvm, values)
            location = table.locationProvider().newDataLocation(spec, partition, name)
            builder = builder.withPartition(partition)
        else:
            location = table.locationProvider().newDataLocation(name)
        written = _write(store, location, part.cast(schema.arrow), codec)
        measured = iceberg(jvm, "parquet.ParquetUtil").fileMetrics(table.io().newInputFile(location), metrics)
        files.append(
            builder.withPath(location)
            .withFormat("parquet")
            .withFileSizeInBytes(written)
            .withMetrics(measured)
            .build()
        )
        size += written
    return files, size


def adopt_files(table: Any, jvm: Any, files: Sequence[tuple[str, int]]) -> list[Any]:
    """Return Iceberg's objects for Parquet files of an unpartitioned table, from their footers."""
    metrics = iceberg(jvm, "MetricsConfig").forTable(table)
    parquet = iceberg(jvm, "parquet.ParquetUtil")
    return [
        iceberg(jvm, "DataFiles")
        .builder(table.spec())
        .withPath(location)
        .withFormat("parquet")
        .withFileSizeInBytes(size)
        .withMetrics(parquet.fileMetrics(table.io().newInputFile(location), metrics))
        .build()
        for location, size in files
    ]


def _write(store: Store, location: str, rows: pa.Table, codec: str) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, compression="NONE" if codec == "uncompressed" else codec, row_group_size=_ROW_GROUP
    )
    buffer = sink.getvalue()
    store.write_bytes(location, buffer)
    return int(buffer.size)
