"""What a Parquet file's footer tells of its columns, as manifests keep it: sizes, counts and bounds.

Iceberg can find this out by itself, from the file that was just written. It would open the file again,
which on an object store is a row of requests, and read Hadoop's whole configuration each time.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from esker.engine.iceberg.schema import field_id

_PREFIX = "write.metadata.metrics."
_INFERRED = 100
"""So many columns have metrics where nothing is said about it; very wide tables would bloat manifests."""
_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class Leaf:
    """A column of a file: it holds plain values."""

    id: int
    path: str
    type: pa.DataType
    is_repeated: bool
    """It lies inside a list or a map: what its values say does not concern rows."""
    names: tuple[str, ...]
    """The column's name, then those of the fields inside."""


def metrics(
    footer: pq.FileMetaData, columns: pa.Schema, properties: Mapping[str, str], rows: pa.Table
) -> dict[str, Any]:
    """Return a file's metrics as the JSON that Iceberg reads, as far as a table's properties want them.

    `rows` are those of the file: how many values are NaN, only they tell. A reader takes a missing count
    for none, and then drops a file with a NaN row for `DELETE … WHERE x < 5`.
    """
    groups = _groups(footer)
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for index, leaf in enumerate(leaf for field in columns for leaf in leaves(field)):
        mode = _mode(leaf.path, index, properties)
        if mode == "none":
            continue
        chunks = [group.column(index) for group in groups]
        sizes[leaf.id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.is_repeated:
            continue
        values[leaf.id] = sum(chunk.num_values for chunk in chunks)
        known = [chunk.statistics for chunk in chunks]
        if all(each is not None and each.has_null_count for each in known):
            nulls[leaf.id] = sum(each.null_count for each in known)
        if pa.types.is_floating(leaf.type):
            nans[leaf.id] = nan_count(rows, leaf.names)
        bounds = _bounds(known, leaf.type, nulls.get(leaf.id), values[leaf.id])
        if mode == "counts" or bounds is None:
            continue
        low, high = _cut(bounds, leaf.type, mode)
        lower[leaf.id] = serialized(low, leaf.type)
        if high is not None:
            upper[leaf.id] = serialized(high, leaf.type)
    return {
        "column-sizes": _as_json(sizes),
        "value-counts": _as_json(values),
        "null-value-counts": _as_json(nulls),
        "nan-value-counts": _as_json(nans),
        "lower-bounds": _as_json({number: value.hex().upper() for number, value in lower.items()}),
        "upper-bounds": _as_json({number: value.hex().upper() for number, value in upper.items()}),
    }


def unbounded(footer: pq.FileMetaData) -> Iterator[Leaf]:
    """Yield the columns of which a footer gives no bounds that readers may rely on.

    A row group with a very long value has none. Numbers may be NaN, and a footer does not count these:
    with bounds and without a count, readers take a file for one without NaN.
    """
    columns, groups = footer.schema.to_arrow_schema(), _groups(footer)
    for index, leaf in enumerate(leaf for field in columns for leaf in leaves(field)):
        if pa.types.is_floating(leaf.type) or any(not _is_bounded(group.column(index)) for group in groups):
            yield leaf


def _groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(index) for index in range(footer.num_row_groups)]


def _is_bounded(chunk: pq.ColumnChunkMetaData) -> bool:
    known = chunk.statistics
    return known is not None and (known.has_min_max or (known.has_null_count and known.num_values == 0))


def bounds_of(footer: pq.FileMetaData, index: int, kind: pa.DataType) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column; None where the footer does not tell.

    A decimal is its unscaled number.
    """
    groups = _groups(footer)
    return _bounds([group.column(index).statistics for group in groups], kind, None, -1)


def split_offsets(footer: pq.FileMetaData) -> list[int]:
    """Return where in the file readers may begin."""
    offsets = []
    for index in range(footer.num_row_groups):
        first = footer.row_group(index).column(0)
        offsets.append(first.dictionary_page_offset or first.data_page_offset)
    return offsets


def nan_count(rows: pa.Table, names: Sequence[str]) -> int:
    """Return how many values of a column, or of a field inside structs, are NaN."""
    column = rows.column(names[0])
    values = pc.struct_field(column, names[1:]) if names[1:] else column
    return int(pc.sum(pc.is_nan(values)).as_py() or 0)


def leaves(field: pa.Field, above: tuple[str, ...] = (), *, is_repeated: bool = False) -> Iterator[Leaf]:
    kind, names = field.type, (*above, field.name)
    if pa.types.is_struct(kind):
        inner = [(part, is_repeated) for part in kind]
    elif pa.types.is_map(kind):
        inner = [(kind.key_field, True), (kind.item_field, True)]
    elif pa.types.is_list(kind):
        inner = [(kind.value_field, True)]
    else:
        yield Leaf(field_id(field), ".".join(names), kind, is_repeated, names)
        return
    for part, repeated in inner:
        yield from leaves(part, names, is_repeated=repeated)


def _mode(path: str, index: int, properties: Mapping[str, str]) -> str:
    default = properties.get(f"{_PREFIX}default", "truncate(16)" if index < _INFERRED else "none")
    return properties.get(f"{_PREFIX}column.{path}", default).strip().lower()


def _bounds(
    known: Iterable[Any], kind: pa.DataType, nulls: int | None, values: int
) -> tuple[Any, Any] | None:
    """Return the least and the greatest value; None unless they hold for every value of the file."""
    known = list(known)
    # Not `None in known`: comparing statistics with anything else crashes the process.
    if nulls == values or any(each is None for each in known):
        return None
    # A part of the file without a value has no bounds, and needs none.
    parts = [each for each in known if not (each.has_null_count and each.num_values == 0)]
    if pa.types.is_floating(kind):
        # Where Arrow tells no bounds of numbers that it has written, all are NaN, which no bounds concern.
        parts = [each for each in parts if each.has_min_max]
    if not parts or not all(each.has_min_max for each in parts):
        return None
    low = min(_comparable(each.min_raw, kind) for each in parts)
    high = max(_comparable(each.max_raw, kind) for each in parts)
    if isinstance(low, float) and (math.isnan(low) or math.isnan(high)):
        return None
    return low, high


def _comparable(value: Any, kind: pa.DataType) -> Any:
    """Return a value that compares as the column's values do."""
    if pa.types.is_decimal(kind) and isinstance(value, bytes):
        # The footer has the two's complement, in which negative numbers follow the positive ones.
        return int.from_bytes(value, "big", signed=True)
    return value


def _cut(bounds: tuple[Any, Any], kind: pa.DataType, mode: str) -> tuple[Any, Any]:
    """Return bounds as long as the mode allows. None as the upper one: no short text is greater."""
    cut = re.fullmatch(r"truncate\((\d+)\)", mode)
    low, high = bounds
    if cut is None:
        return low, high
    length = int(cut[1])
    if pa.types.is_string(kind):
        return low.decode()[:length].encode(), _next_text(high.decode(), length)
    if pa.types.is_binary(kind):
        return low[:length], _next_bytes(high, length)
    return low, high


def _next_text(text: str, length: int) -> bytes | None:
    if len(text) <= length:
        return text.encode()
    points = [ord(character) for character in text[:length]]
    while points:
        following = points.pop() + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST:
            return "".join(map(chr, [*points, following])).encode()
    return None


def _next_bytes(value: bytes, length: int) -> bytes | None:
    if len(value) <= length:
        return value
    kept = value[:length].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def serialized(value: Any, kind: pa.DataType) -> bytes:
    """Return a value as Iceberg's single-value serialization has it."""
    if pa.types.is_decimal(kind):
        # The unscaled number, big-endian, without bytes that say nothing.
        number = int(value)
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    match value:
        case bytes():
            return value
        case bool():
            return bytes([value])
        case float():
            return struct.pack("<f" if pa.types.is_float32(kind) else "<d", value)
    return struct.pack("<i" if kind.bit_width == 32 else "<q", value)


def _as_json(values: Mapping[int, Any]) -> dict[str, list[Any]]:
    return {"keys": list(values), "values": list(values.values())}
