"""Which manifests, files and row groups may hold a row with one of a batch's keys.

Each column of the key is compared with the bounds that Iceberg or Parquet keeps of it, and the values
that the keys have under a partition spec with the partition of a file. Nothing is left out by what is not
known: bounds that are missing, types that are not compared here, partition values that are null.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from esker.engine.iceberg.manifests import FileEntry, SpecField, SpecOf
from esker.engine.iceberg.partition_transform import transformed
from esker.engine.iceberg.schema import FieldSchema, field_id

_EXACT = 20_000
"""Up to so many values, each is compared with bounds; beyond, only the lowest and the highest."""
_ALL_DIGITS = Context(prec=38)
"""Python rounds to 28 digits unless told otherwise."""
_NOT_COMPARED = (ArithmeticError, ValueError, TypeError)
"""Raised for values that Python does not have, such as days after the year 9999; Arrow's errors are among
them. Nothing is left out by such values."""
_AS_NUMBER = {
    pa.bool_(): pa.int8(),
    pa.date32(): pa.int32(),
    pa.time64("us"): pa.int64(),
}
_FIRST_DAY = date(1970, 1, 1).toordinal()
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES = {pa.int32(): 4, pa.date32(): 4, pa.int64(): 8, pa.time64("us"): 8}


class Values:
    """The values of one column of the keys: numbers, decimals or bytes, which are all in order."""

    def __init__(self, column: pa.Array) -> None:
        self.kind = column.type
        self._in_order: list[Any] | None = None
        self._range: tuple[Any, Any] | None = None
        plain = _plain(column)
        if plain is None:
            return
        if len(plain) <= _EXACT:
            self._in_order = pc.unique(plain).drop_null().sort().to_pylist()
        else:
            bounds = pc.min_max(plain)
            self._range = bounds["min"].as_py(), bounds["max"].as_py()

    def may_be_within(self, low: bytes | None, high: bytes | None) -> bool:
        """Tell whether any value may lie inside bounds as they stand in manifests."""
        if low is None or high is None:
            return True
        first, last = _bound(low, self.kind), _bound(high, self.kind)
        return first is None or last is None or self._may_lie_between(first, last)

    def may_be_among(self, statistics: pq.Statistics | None) -> bool:
        """Tell whether any value may be in a row group with these statistics."""
        if statistics is None or not statistics.has_min_max:
            return True
        try:
            bounds = _plain(pa.array([statistics.min, statistics.max], self.kind))
            return bounds is None or self._may_lie_between(*bounds.to_pylist())
        except _NOT_COMPARED:
            return True

    def _may_lie_between(self, low: Any, high: Any) -> bool:
        if self._in_order is not None:
            at = bisect_left(self._in_order, low)
            return at < len(self._in_order) and bool(self._in_order[at] <= high)
        return self._range is None or not (self._range[1] < low or high < self._range[0])


@dataclass(frozen=True)
class _Partitioned:
    """The partitions of one spec that keys belong to, as far as their columns tell."""

    places: tuple[int, ...]
    """Which of the spec's fields are told by the key."""
    values: tuple[Values, ...]
    """What the keys have in each of them."""
    together: frozenset[tuple[Any, ...]]
    """What they have in all of them."""


class Candidates:
    """What of a table may hold one of some keys."""

    def __init__(
        self, keys: pa.Table, values: Mapping[str, Values], schema: FieldSchema, spec_of: SpecOf
    ) -> None:
        self._keys = keys
        self._numbers = {field_id(schema.arrow.field(name)): name for name in keys.column_names}
        self._values = {number: values[name] for number, name in self._numbers.items()}
        self._spec_of = spec_of
        self._specs: dict[int, _Partitioned | None] = {}

    def may_be_in(self, file: FileEntry) -> bool:
        """Tell whether a data file may hold a key."""
        for number, values in self._values.items():
            if not values.may_be_within(file.lower.get(number), file.upper.get(number)):
                return False
        known = self._of_spec(file.spec_id) if file.partition else None
        if known is None:
            return True
        stored = tuple(_of_python(file.partition[place][1]) for place in known.places)
        return None in stored or stored in known.together

    def may_be_below(self, manifest: Mapping[str, Any]) -> bool:
        """Tell whether a file of a manifest may hold a key, or delete one, as the list of manifests says."""
        summaries = manifest.get("partitions")
        known = self._of_spec(manifest["partition_spec_id"]) if summaries else None
        if known is None or summaries is None:
            return True
        for place, values in zip(known.places, known.values, strict=True):
            about = summaries[place]
            within = values.may_be_within(about.get("lower_bound"), about.get("upper_bound"))
            if not within and not about.get("contains_null"):
                return False
        return True

    def _of_spec(self, spec_id: int) -> _Partitioned | None:
        if spec_id not in self._specs:
            self._specs[spec_id] = self._partitioned(self._spec_of(spec_id))
        return self._specs[spec_id]

    def _partitioned(self, spec: Sequence[SpecField]) -> _Partitioned | None:
        places, arrays = [], []
        for place, field in enumerate(spec):
            column = self._numbers.get(field.source)
            if column is None or field.transform == "void":
                continue
            with suppress(*_NOT_COMPARED):
                values = transformed(self._keys, column, field.transform)
                # A day that the library has no year for becomes null, and lies in a partition all the same.
                is_whole = values.null_count == self._keys.column(column).null_count
                if is_whole and _plain(values) is not None:
                    places.append(place)
                    arrays.append(values)
        if not places:
            return None
        plain = pa.table([_plain(values) for values in arrays], names=[str(place) for place in places])
        distinct = plain.group_by(plain.column_names, use_threads=False).aggregate([])
        together = zip(*(column.to_pylist() for column in distinct.columns), strict=True)
        return _Partitioned(tuple(places), tuple(map(Values, arrays)), frozenset(together))


def _plain(values: pa.Array) -> pa.Array | None:
    """Return values as numbers, decimals or bytes; None for types whose order or equality is not so plain."""
    kind = values.type
    if kind in _AS_NUMBER:
        return values.cast(_AS_NUMBER[kind])
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return values.cast(pa.int64())
    if pa.types.is_string(kind):
        return values.cast(pa.binary())
    is_known = pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_binary(kind)
    return values if is_known else None


def _bound(stored: bytes, kind: pa.DataType) -> Any:
    """Return a bound in a manifest as the values are compared; None where it is not known how."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return stored
    if pa.types.is_boolean(kind):
        return int(stored[0]) if len(stored) == 1 else None
    if pa.types.is_decimal(kind):
        return Decimal(int.from_bytes(stored, "big", signed=True)).scaleb(-kind.scale, _ALL_DIGITS)
    length = 8 if pa.types.is_timestamp(kind) else _BYTES.get(kind)
    # A whole number that was widened has older bounds of four bytes; other types would mean something else.
    if len(stored) == length or (kind == pa.int64() and len(stored) == 4):
        return int.from_bytes(stored, "little", signed=True)
    return None


def _of_python(value: Any) -> Any:
    """Return a partition's value as the values are compared; None where it is not known how."""
    match value:
        case bool():
            return int(value)
        case int() | bytes() | Decimal():
            return value
        case str():
            return value.encode()
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (moment - _FIRST_MOMENT) // timedelta(microseconds=1)
        case date():
            return value.toordinal() - _FIRST_DAY
        case time():
            return int(pa.scalar(value, pa.time64("us")).value)
    return None
