"""What manifests say of data files, compared with the files.

Manifests that were written with wrong bounds make readers leave out files that hold what they look for, and
let a delete take a whole file for its own. Only what is wrong is told: bounds that are wider than the values
are right, and so are those that are missing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.iceberg.manifests import FileEntry, entries_of
from esker.engine.iceberg.metrics import Leaf, bounds_of, leaves, nan_count, serialized

_DIGITS = Context(prec=38)
_COMPARED = (pa.int32(), pa.int64(), pa.date32(), pa.float32(), pa.float64())


@dataclass(frozen=True)
class Told:
    """A data file, and what its entry in a manifest says of its columns, by field id."""

    entry: FileEntry
    groups: int | None
    """How many row groups it has."""
    nans: Mapping[int, int]


@dataclass(frozen=True)
class Correction:
    """What is wrong in the entry of a data file, and what is right: bounds and counts of NaN by field id."""

    path: str
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    nans: Mapping[int, int] = field(default_factory=dict)
    what: tuple[str, ...] = ()
    """What is wrong, for people."""


def told_in(
    records: list[dict[str, Any]], sequence: int, spec_id: int, added_by: int | None
) -> Iterator[Told]:
    """Yield the Parquet data files that the records of a manifest name."""
    live = [record["data_file"] for record in records if record["status"] != 2]
    entries = entries_of(records, sequence, spec_id, added_by)
    for entry, file in zip(entries, live, strict=True):
        if entry.content == 0 and entry.format == "parquet":
            offsets, nans = file.get("split_offsets"), file.get("nan_value_counts") or ()
            yield Told(
                entry, len(offsets) if offsets else None, {pair["key"]: pair["value"] for pair in nans}
            )


@dataclass(frozen=True)
class Suspects:
    """The columns whose bounds or counts may have been written wrong, by field id."""

    decimals: frozenset[int]
    floats: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.decimals or self.floats)

    def __contains__(self, told: Told) -> bool:
        """Tell whether a file must be looked into: of most, the manifest tells that it is right."""
        entry = told.entry
        if any(number in entry.lower and number not in told.nans for number in self.floats):
            return True
        # Bounds of a single row group are those of the file.
        return told.groups != 1 and any(number in entry.lower for number in self.decimals)


def suspects(document: Mapping[str, Any]) -> Suspects:
    """Return the columns of a table, as its metadata has them now or had them before, that are suspect."""
    types: dict[int, str] = {}
    for schema in document.get("schemas") or [document["schema"]]:
        types |= _types(schema)
    return Suspects(
        frozenset(number for number, kind in types.items() if kind.startswith("decimal")),
        frozenset(number for number, kind in types.items() if kind in ("float", "double")),
    )


def wrong_metrics(told: Told, parquet: pq.ParquetFile) -> Correction | None:
    """Return what is wrong in the entry of a file; None when nothing is. Floats without a count are read."""
    footer = parquet.metadata
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    nans: dict[int, int] = {}
    what: list[str] = []
    columns = footer.schema.to_arrow_schema()
    for index, leaf in enumerate(leaf for column in columns for leaf in leaves(column)):
        low, high = told.entry.lower.get(leaf.id), told.entry.upper.get(leaf.id)
        if leaf.id == -1 or leaf.is_repeated or not _is_compared(leaf.type) or (low is None and high is None):
            continue
        true = bounds_of(footer, index, leaf.type)
        if true is not None and _is_wrong(low, high, true, leaf.type):
            lower[leaf.id], upper[leaf.id] = (serialized(value, leaf.type) for value in true)
            what.append(_differs(leaf, low, high, true))
        if pa.types.is_floating(leaf.type) and leaf.id not in told.nans:
            count = _nans_in(parquet, leaf)
            # Also that there are none: where an entry is corrected, its file need not be read again.
            nans[leaf.id] = count
            if count:
                what.append(f'column "{leaf.path}": {count:,} values are NaN, and the manifest has no count')
    return Correction(told.entry.path, lower, upper, nans, tuple(what)) if what else None


def _is_compared(kind: pa.DataType) -> bool:
    is_moment = pa.types.is_timestamp(kind) and kind.unit == "us"
    return kind in _COMPARED or is_moment or pa.types.is_decimal128(kind)


def _is_wrong(low: bytes | None, high: bytes | None, true: tuple[Any, Any], kind: pa.DataType) -> bool:
    try:
        first, last = (None if bound is None else _read(bound, kind) for bound in (low, high))
    except struct.error:
        return False  # of a type that the column had before, or has since
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (first, last)):
        return True
    return (first is not None and true[0] < first) or (last is not None and last < true[1])


def _read(bound: bytes, kind: pa.DataType) -> Any:
    """Return a bound as the values of a footer compare; a decimal as its unscaled number."""
    if pa.types.is_decimal(kind):
        return int.from_bytes(bound, "big", signed=True)
    if pa.types.is_floating(kind):
        return struct.unpack("<f" if len(bound) == 4 else "<d", bound)[0]
    if len(bound) not in (4, 8):
        raise struct.error
    return int.from_bytes(bound, "little", signed=True)


def _differs(leaf: Leaf, low: bytes | None, high: bytes | None, true: tuple[Any, Any]) -> str:
    def shown(value: Any) -> str:
        if pa.types.is_decimal(leaf.type):
            value = Decimal(value).scaleb(-leaf.type.scale, _DIGITS)
        return str(value)

    told = [None if bound is None else _read(bound, leaf.type) for bound in (low, high)]
    said = " to ".join("unknown" if bound is None else shown(bound) for bound in told)
    return f'column "{leaf.path}": the manifest says {said}, the file {shown(true[0])} to {shown(true[1])}'


def _nans_in(parquet: pq.ParquetFile, leaf: Leaf) -> int:
    groups = range(parquet.metadata.num_row_groups)
    return sum(nan_count(parquet.read_row_group(group, [leaf.path]), leaf.names) for group in groups)


def _types(kind: Any) -> dict[int, str]:
    """Return the types of the fields of a struct, by id; none of what lies inside lists and maps."""
    found: dict[int, str] = {}
    for each in kind["fields"]:
        if isinstance(each["type"], str):
            found[each["id"]] = each["type"]
        elif each["type"]["type"] == "struct":
            found |= _types(each["type"])
    return found
