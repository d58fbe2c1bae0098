"""The row hash: one number that tells whether a row's content changed, the same in both lanes.

Each non-null column gives XXH64 of its field id and its value; the numbers are combined by exclusive or.
So adding, reordering, renaming or widening columns changes no hash. Whole numbers count as 64 bits,
floats as doubles, decimals as 38 digits: what a wider column would hold.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from decimal import Context
from decimal import Decimal as Number
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type, quoted

HASH_VERSION = "1"
_SEED = 42
_MASK = (1 << 64) - 1
_ALL_DIGITS = Context(prec=38)
"""Python rounds to 28 digits unless told otherwise."""


def spark_hash(columns: tuple[Column, ...], ids: Mapping[str, int]) -> Expression:
    """Return the hash of these columns of a frame. `ids` are field ids by path: `address.city`."""
    parts = []
    for column in columns:
        value = F.col(quoted(column.name))
        hashed = F.xxhash64(_number(ids[column.name]), _canonical(value, column.type, column.name, ids))
        parts.append(F.when(value.isNotNull(), hashed).otherwise(F.lit(0).cast("bigint")))
    return reduce(lambda left, right: left.bitwiseXOR(right), parts, F.lit(0).cast("bigint"))


def arrow_hash(rows: pa.Table, ids: Mapping[str, int]) -> pa.Array:
    """Return the hashes of a table's rows; all its columns count."""
    total = pa.repeat(pa.scalar(0, pa.uint64()), len(rows))
    for name in rows.column_names:
        seed = xxhash.xxh64_intdigest(struct.pack("<i", ids[name]), _SEED)
        total = pc.bit_wise_xor(total, _hash_column(rows.column(name), name, ids, seed))
    return total.view(pa.int64())


def _number(value: int) -> Expression:
    return F.lit(value).cast("int")


def _canonical(value: Expression, kind: Type, path: str, ids: Mapping[str, int]) -> Expression:
    """Return a value whose xxhash64 in Spark is the one of `_hasher`.

    Spark hashes what is nested by hashing its parts in order, and leaves nulls out: sizes, field ids and
    marks of presence keep apart what would be one otherwise.
    """
    match kind:
        case Plain("int"):
            return value.cast("bigint")
        case Plain("float"):
            return value.cast("double")
        case Decimal(_, scale):
            return value.cast(f"decimal(38,{scale})")
        case Struct(fields):
            parts = []
            for index, field in enumerate(sorted(fields, key=lambda f: ids[f"{path}.{f.name}"])):
                name = f"{path}.{field.name}"
                inner = _canonical(value.getField(field.name), field.type, name, ids)
                present = value.getField(field.name).isNotNull()
                numbered = F.struct(_number(ids[name]).alias("id"), inner.alias("value"))
                parts.append(F.when(present, numbered).alias(f"f{index}"))
            return F.struct(*parts)
        case Array(element):
            items = F.transform(
                value,
                lambda item: F.struct(
                    item.isNotNull().alias("present"),
                    _canonical(item, element, f"{path}.element", ids).alias("value"),
                ),
            )
            return F.struct(F.size(value).alias("size"), items.alias("items"))
        case Map(key, inner_kind):
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(
                    _canonical(e["key"], key, f"{path}.key", ids).alias("key"),
                    e["value"].isNotNull().alias("present"),
                    _canonical(e["value"], inner_kind, f"{path}.value", ids).alias("value"),
                ),
            )
            # A map has no order of its own; a value may be of a kind that cannot be sorted.
            return F.struct(F.size(value).alias("size"), F.array_sort(entries, _by_key).alias("items"))
    return value


def _by_key(left: Expression, right: Expression) -> Expression:
    return F.when(left["key"] < right["key"], -1).when(left["key"] > right["key"], 1).otherwise(0)


def _hash_column(column: pa.ChunkedArray, path: str, ids: Mapping[str, int], seed: int) -> pa.Array:
    kind = column.type
    values = column.combine_chunks()
    if pa.types.is_integer(kind):
        hashed = _hash_longs(values.cast(pa.int64()), seed)
    elif pa.types.is_timestamp(kind):
        hashed = _hash_longs(values.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()), seed)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        digest = xxhash.xxh64_intdigest
        texts = values.cast(pa.large_binary()).to_pylist()
        hashed = pa.array([0 if text is None else digest(text, seed) for text in texts], pa.uint64())
    else:
        hasher = _hasher(kind, path, ids)
        plain = values.cast(_with_numbers(kind)).to_pylist()
        hashes = [0 if value is None else hasher(value, seed) for value in plain]
        hashed = pa.array(hashes, pa.uint64())
    return pc.if_else(pc.is_null(values), pa.scalar(0, pa.uint64()), hashed)


_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def _hash_longs(values: pa.Array, seed: int) -> pa.Array:
    """XXH64 of 8 bytes each, for a whole column at once."""

    def constant(number: int) -> pa.Scalar:
        return pa.scalar(number & _MASK, pa.uint64())

    def rotated(number: pa.Array, by: int) -> pa.Array:
        return pc.bit_wise_or(pc.shift_left(number, constant(by)), pc.shift_right(number, constant(64 - by)))

    def mixed(number: pa.Array, by: int) -> pa.Array:
        return pc.bit_wise_xor(number, pc.shift_right(number, constant(by)))

    bits = values.fill_null(0).view(pa.uint64())
    lane = pc.multiply(rotated(pc.multiply(bits, constant(_P2)), 31), constant(_P1))
    total = pc.bit_wise_xor(constant(seed + _P5 + 8), lane)
    total = pc.add(pc.multiply(rotated(total, 27), constant(_P1)), constant(_P4))
    total = pc.multiply(mixed(total, 33), constant(_P2))
    total = pc.multiply(mixed(total, 29), constant(_P3))
    return mixed(total, 32)


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers instead of days and moments: Python knows none after the year 9999."""
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with_numbers(kind.key_type), _with_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_with_numbers(kind.value_type))
    return kind


def _hasher(kind: pa.DataType, path: str, ids: Mapping[str, int]) -> Callable[[Any, int], int]:
    """Return the hash of one value of a kind, days and moments as numbers: what Spark's xxhash64 gives."""
    digest = xxhash.xxh64_intdigest
    if pa.types.is_boolean(kind):
        return lambda value, seed: digest(struct.pack("<i", value), seed)
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return lambda value, seed: digest(struct.pack("<q", value), seed)
    if pa.types.is_floating(kind):
        return lambda value, seed: digest(_double(value), seed)
    if pa.types.is_date(kind):
        return lambda value, seed: digest(struct.pack("<i", value), seed)
    if pa.types.is_decimal(kind):
        return lambda value, seed: digest(_unscaled(value, kind.scale), seed)
    if pa.types.is_struct(kind):
        return _struct_hasher(kind, path, ids)
    if pa.types.is_map(kind):
        return _map_hasher(kind, path, ids)
    if pa.types.is_list(kind):
        return _list_hasher(kind, path, ids)
    return lambda value, seed: digest(value if isinstance(value, bytes) else value.encode(), seed)


def _struct_hasher(kind: pa.DataType, path: str, ids: Mapping[str, int]) -> Callable[[Any, int], int]:
    numbered = sorted((ids[f"{path}.{field.name}"], field) for field in kind)
    parts = [
        (field.name, struct.pack("<i", number), _hasher(field.type, f"{path}.{field.name}", ids))
        for number, field in numbered
    ]

    def hashed(value: Any, seed: int) -> int:
        for name, number, hasher in parts:
            if value[name] is not None:
                seed = hasher(value[name], xxhash.xxh64_intdigest(number, seed))
        return seed

    return hashed


def _list_hasher(kind: pa.DataType, path: str, ids: Mapping[str, int]) -> Callable[[Any, int], int]:
    element = _present(_hasher(kind.value_type, f"{path}.element", ids))
    return lambda value, seed: reduce(lambda s, item: element(item, s), value, _sized(value, seed))


def _map_hasher(kind: pa.DataType, path: str, ids: Mapping[str, int]) -> Callable[[Any, int], int]:
    key = _hasher(kind.key_type, f"{path}.key", ids)
    inner = _present(_hasher(kind.item_type, f"{path}.value", ids))
    return lambda value, seed: reduce(
        lambda s, pair: inner(pair[1], key(pair[0], s)), sorted(value, key=_sort_key), _sized(value, seed)
    )


def _sized(value: Any, seed: int) -> int:
    return xxhash.xxh64_intdigest(struct.pack("<i", len(value)), seed)


def _present(hasher: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    def hashed(value: Any, seed: int) -> int:
        seed = xxhash.xxh64_intdigest(struct.pack("<i", value is not None), seed)
        return seed if value is None else hasher(value, seed)

    return hashed


def _sort_key(pair: tuple[Any, Any]) -> Any:
    # Spark sorts texts by their bytes.
    return pair[0].encode() if isinstance(pair[0], str) else pair[0]


def _double(value: float) -> bytes:
    # Java has one bit pattern for "no number" here, and Spark takes -0.0 for 0.0.
    return struct.pack("<Q", 0x7FF8000000000000) if math.isnan(value) else struct.pack("<d", value + 0.0)


def _unscaled(value: Number, scale: int) -> bytes:
    number = int(value.scaleb(scale, _ALL_DIGITS))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)
