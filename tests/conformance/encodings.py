"""Ways in which Esker can write a table, each as a table `shop.works` that readers are tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.conformance.capabilities import FIRST, sales_of, works_of
from tests.conformance.lakes import Lake
from tests.load.works import Works

Make = Callable[[Lake, Path], Any]


def _changed(**keys: Any) -> Make:
    """Rows of which one was updated: the old version is deleted."""

    def make(lake: Lake, path: Path) -> Any:
        works = works_of(lake, path, **keys)
        works.load(FIRST)
        works.load([{"id": 1, "at": 2, "name": "agate"}])

    return make


def _appended(**keys: Any) -> Make:
    def make(lake: Lake, path: Path) -> Any:
        folder = sales_of(lake, path)
        folder.change("works", **keys)
        folder.write_csv("landing/a.csv", ["id", "name"], [(1, "agate"), (2, "beryl")])
        folder.run("works")

    return make


def _typed(kind: str, value: Any, arrow: pa.DataType | None = None) -> Make:
    def make(lake: Lake, path: Path) -> Any:
        works = Works(path, lake.project, columns={"id": "bigint", "value": kind})
        rows = [{"id": 1, "value": value}, {"id": 2, "value": None}]
        works.load(
            rows if arrow is None else pa.table({"id": [1, 2], "value": pa.array([value, None], arrow)})
        )

    return make


def _codec(name: str) -> Make:
    return _appended(properties={"write.parquet.compression-codec": name})


ENCODINGS: dict[str, Make] = {
    "format version 2, rows deleted by position": _changed(),
    "format version 3, rows deleted by vectors": _changed(format_version=3),
    "avro": _appended(format="avro"),
    "orc": _appended(format="orc"),
    **{f"parquet, {codec}": _codec(codec) for codec in ("zstd", "snappy", "gzip", "lz4", "uncompressed")},
    "uuid": _typed("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    "fixed": _typed("fixed(4)", b"1234"),
    "array": _typed("array<string>", ["a", None]),
    "map": _typed("map<string,bigint>", [("a", 1)], pa.map_(pa.string(), pa.int64())),
    "struct": _typed("struct<a: bigint, b: string>", {"a": 1, "b": "x"}),
    "timestamp": _typed("timestamp", "2026-01-02T03:04:05.678901Z"),
    "timestamp_ntz": _typed("timestamp_ntz", "2026-01-02T03:04:05.678901"),
}
"""By the words of the page."""


@dataclass(frozen=True)
class Limit:
    """An encoding that a reader does not know."""

    why: str
    """In the words of the page."""
    says: str
    """What the reader says to it."""


_PARQUET_ONLY = "DuckDB reads data files in Parquet only"

UNREADABLE: dict[tuple[str, str], Limit] = {
    ("trino", "format version 3, rows deleted by vectors"): Limit(
        "Trino 476 reads no deletion vectors; it can from 480 on", "Unexpected PUFFIN file format"
    ),
    ("pyiceberg", "avro"): Limit("PyIceberg reads no data files in Avro", "Unsupported file format: .*AVRO"),
    ("duckdb", "avro"): Limit(_PARQUET_ONLY, "'AVRO' not supported, only supports 'parquet'"),
    ("duckdb", "orc"): Limit(_PARQUET_ONLY, "'ORC' not supported, only supports 'parquet'"),
    ("duckdb", "parquet, lz4"): Limit(
        "DuckDB reads Parquet's newer LZ4, and Iceberg writes the older one", "compression codec .LZ4."
    ),
}
"""By reader and encoding. The suite sees to it that this is so."""
