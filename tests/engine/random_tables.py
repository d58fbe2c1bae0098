"""Random tables of every type, full of the values that statistics get wrong."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from itertools import count
from typing import Any

import pyarrow as pa

from esker.engine.iceberg.schema import with_id

_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_NAN, _INFINITY = float("nan"), float("inf")
_FLOATS = [_NAN, _NAN, -0.0, 0.0, _INFINITY, -_INFINITY, 1.5, -1.5, 2.0**-149, -(2.0**100)]
_CHARACTERS = (
    "a",
    "z",
    "\x00",
    "\x7f",
    "ä",
    "\u07ff",
    "\u0800",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "😀",
    "\U0010ffff",
)
_BYTES = b"\x00", b"\x01", b"\x7f", b"\x80", b"\xfe", b"\xff", b"\xff"
_DIGITS = Context(prec=38)
_TOO_LONG = 5_000
"""Arrow writes no statistics of longer values than 4,096 bytes."""


def random_schema(chance: random.Random, columns: int) -> pa.Schema:
    """Return columns of random types, nested ones among them, with field ids."""
    numbers = count(1)
    return pa.schema([with_id(f"c{n}", _type(chance, numbers), next(numbers)) for n in range(columns)])


def every_type() -> pa.Schema:
    """Return a column of every plain type and of every width of a decimal."""
    kinds = [*_PLAIN.values(), *(pa.decimal128(digits, min(digits, 2)) for digits in range(1, 39))]
    return pa.schema([with_id(f"c{number}", kind, number) for number, kind in enumerate(kinds, 1)])


def random_rows(chance: random.Random, schema: pa.Schema, rows: int, together: int) -> pa.Table:
    """Return rows; of each column, so many rows in a row are alike: only nulls, only NaN, only negative…"""
    columns = []
    for field in schema:
        values: list[Any] = []
        while len(values) < rows:
            pool = [_value(chance, field.type) for _ in range(chance.choice([1, 2, 5]))]
            values += [_or_none(chance, pool) for _ in range(together)]
        columns.append(pa.array(values[:rows], field.type))
    return pa.table(columns, schema=schema)


def type_name(kind: pa.DataType) -> str:
    """Return a type as a pipeline declares it."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next(name for name, plain in _PLAIN.items() if plain == kind)


@dataclass(frozen=True)
class Values:
    """All values of a column, or of a field inside a struct."""

    id: int
    path: str
    type: pa.DataType
    values: list[Any]


def values_of(rows: pa.Table) -> Iterator[Values]:
    """Yield the values of each column that is not nested, and of each such field inside structs."""
    for field in rows.schema:
        yield from _inside(field, field.name, rows.column(field.name).to_pylist())


def _inside(field: pa.Field, path: str, values: list[Any]) -> Iterator[Values]:
    if pa.types.is_struct(field.type):
        for part in field.type:
            inner = [None if value is None else value[part.name] for value in values]
            yield from _inside(part, f"{path}.{part.name}", inner)
    elif not pa.types.is_nested(field.type):
        yield Values(int(field.metadata[b"PARQUET:field_id"]), path, field.type, values)


def _type(chance: random.Random, numbers: Iterator[int], depth: int = 0) -> pa.DataType:
    kind = chance.random()
    if depth < 3 and kind < 0.15:
        fields = range(chance.randint(1, 3))
        return pa.struct([with_id(f"f{n}", _type(chance, numbers, depth + 1), next(numbers)) for n in fields])
    if depth < 3 and kind < 0.22:
        return pa.list_(with_id("element", _type(chance, numbers, depth + 1), next(numbers)))
    if depth < 3 and kind < 0.29:
        key = with_id("key", chance.choice([pa.string(), pa.int32()]), next(numbers), nullable=False)
        return pa.map_(key, with_id("value", _type(chance, numbers, depth + 1), next(numbers)))
    if kind < 0.5:
        digits = chance.randint(1, 38)
        return pa.decimal128(digits, chance.randint(0, digits))
    return chance.choice(list(_PLAIN.values()))


def _or_none(chance: random.Random, pool: list[Any]) -> Any:
    return None if chance.random() < 0.1 else chance.choice(pool)


def _value(chance: random.Random, kind: pa.DataType) -> Any:
    if chance.random() < 0.05:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _value(chance, field.type) for field in kind}
    if pa.types.is_map(kind):
        keys = {
            key for _ in range(chance.randint(0, 3)) if (key := _value(chance, kind.key_type)) is not None
        }
        return [(key, _value(chance, kind.item_type)) for key in keys]
    if pa.types.is_list(kind):
        return [_value(chance, kind.value_type) for _ in range(chance.randint(0, 3))]
    if pa.types.is_decimal(kind):
        # Powers of 256 are where one more byte is needed.
        edge = chance.choice([1, 2**7, 2**8, 2**15, 2**31, 2**63, 2**120, 10**kind.precision])
        number = chance.choice([-1, 1]) * (edge + chance.randint(-2, 2))
        most = 10**kind.precision - 1
        return Decimal(max(-most, min(most, number))).scaleb(-kind.scale, _DIGITS)
    if pa.types.is_floating(kind):
        value = chance.choice([*_FLOATS, chance.uniform(-1e3, 1e3)])
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == pa.float32() else value
    return _plain_value(chance, kind)


def _plain_value(chance: random.Random, kind: pa.DataType) -> Any:
    match kind:
        case _ if kind == pa.bool_():
            return chance.random() < 0.5
        case _ if pa.types.is_integer(kind):
            edge = chance.choice([0, 0, 2**7, 2**15, 2 ** (kind.bit_width - 1) - 3])
            return chance.choice([-1, 1]) * (edge + chance.randint(-2, 2))
        case _ if kind == pa.date32():
            return chance.choice([date(1970, 1, 1) + timedelta(chance.randint(-3, 3)), date.min, date.max])
        case _ if pa.types.is_timestamp(kind):
            near = datetime(1970, 1, 1) + timedelta(microseconds=chance.randint(-3, 3))
            value = chance.choice([near, datetime.min, datetime.max, datetime(1900, 2, 28, 23, 59)])
            return value.replace(tzinfo=UTC) if kind.tz else value
        case _ if kind == pa.string():
            return "".join(_repeated(chance, _CHARACTERS))
    return b"".join(_repeated(chance, _BYTES))


def _repeated(chance: random.Random, parts: tuple[Any, ...]) -> list[Any]:
    """Return parts: none, few, or more than bounds are long."""
    length = chance.choice([0, 1, 2, 3, 4, 15, 16, 17, 40])
    if chance.random() < 0.03:
        length = _TOO_LONG
    same = chance.choice(parts)
    return [same if chance.random() < 0.7 else chance.choice(parts) for _ in range(length)]


def in_order(value: Any) -> Any:
    """Return a value that compares as Iceberg compares the column's values."""
    if isinstance(value, float):
        return value, math.copysign(1, value)
    if isinstance(value, str):
        return value.encode()
    return value
