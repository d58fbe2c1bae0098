"""What the files of a snapshot say of its rows, told from their manifests in this process.

These are the figures that `scan.py` asks Spark for, by the same rules. `Undecided` is raised for what is not
certain to be told alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite, isnan
from struct import pack, unpack
from typing import Any

from esker.engine.iceberg.deleted import deleted_positions
from esker.engine.iceberg.document import Document, Undecided
from esker.engine.iceberg.manifests import read_records
from esker.project.types import Array, Map, Plain, Struct, Type
from esker.project.types import Decimal as DecimalType

_METRICS = "write.metadata.metrics."
_MOST_COLUMNS = 100
"""Iceberg keeps metrics of so many columns unless it is told to keep others."""
_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)
_DELETED = 2


@dataclass(frozen=True)
class Files:
    """How many data files and bytes a scan would read, and how many rows these hold."""

    files: int
    rows: int
    """Without those that are deleted; at most so many where `is_exact` is false."""
    bytes: int
    deleted: int = 0
    """Rows that are deleted by their position, and stay in the files until these are rewritten."""
    is_exact: bool = True
    """False where an engine deleted rows by value, too: how many these are, only a scan can tell."""


@dataclass(frozen=True)
class ColumnStatistics:
    """What the files' metadata knows of one column; rows that are deleted, and stay in the files, count."""

    column: str
    values: int | None
    nulls: int | None
    """Rows without a value; None when some file does not tell, or for what stands inside lists and maps."""
    lowest: str | None
    highest: str | None
    bytes: int | None


@dataclass(frozen=True)
class _Leaf:
    """A column with plain values, or a field with some inside a column."""

    name: str
    number: int
    type: Type
    is_repeated: bool
    """It stands inside a list or a map: files count its values, and not rows."""


def files_of(document: Document) -> Files:
    """Return how much a table's current snapshot holds. Raises Undecided."""
    live = document.files
    if live.has_equality_deletes:
        raise Undecided("rows are deleted by value")
    rows = sum(file.records for file in live.data)
    deleted = sum(len(deleted_positions(live, file)) for file in live.data)
    return Files(len(live.data), rows - deleted, sum(file.size for file in live.data), deleted)


def column_statistics_of(document: Document) -> list[ColumnStatistics]:
    """Return the statistics of each plain column, by name, from the metadata of the current files."""
    leaves = sorted(_leaves(document), key=lambda leaf: leaf.name)
    if any(name.startswith(_METRICS) for name in document.properties) or len(leaves) > _MOST_COLUMNS:
        raise Undecided("which metrics the files have is declared")
    records = list(_data_files(document))
    return [_statistics(leaf, records) for leaf in leaves]


def _data_files(document: Document) -> Iterator[Mapping[str, Any]]:
    """Yield what the manifests of the current snapshot say of its data files."""
    snapshot = document.table.snapshot
    if snapshot is None:
        return
    for manifest in read_records(document.store, snapshot.manifest_list):
        if manifest.get("content"):
            continue
        for record in read_records(document.store, manifest["manifest_path"]):
            if record["status"] != _DELETED:
                yield record["data_file"]


def _leaves(document: Document) -> Iterator[_Leaf]:
    ids = document.schema.ids
    if "initial-default" in document.table.schema:
        raise Undecided("columns have values in files that lack them")
    for column in document.table.columns:
        yield from _below(column.name, column.type, ids, is_repeated=False)


def _below(path: str, kind: Type, ids: Mapping[str, int], *, is_repeated: bool) -> Iterator[_Leaf]:
    match kind:
        case Struct(fields):
            for field in fields:
                yield from _below(f"{path}.{field.name}", field.type, ids, is_repeated=is_repeated)
        case Array(element):
            yield from _below(f"{path}.element", element, ids, is_repeated=True)
        case Map(key, value):
            yield from _below(f"{path}.key", key, ids, is_repeated=True)
            yield from _below(f"{path}.value", value, ids, is_repeated=True)
        case _:
            yield _Leaf(path, ids[path], kind, is_repeated)


def _statistics(leaf: _Leaf, files: Sequence[Mapping[str, Any]]) -> ColumnStatistics:
    values = [_of(file, "value_counts", leaf) for file in files]
    sizes = [_of(file, "column_sizes", leaf) for file in files]
    nulls = [_nulls(leaf, file) for file in files]
    known = [number for number in nulls if number is not None]
    lowest = [bound for file in files if (bound := _of(file, "lower_bounds", leaf)) is not None]
    highest = [bound for file in files if (bound := _of(file, "upper_bounds", leaf)) is not None]
    return ColumnStatistics(
        column=leaf.name,
        values=_sum(values),
        nulls=sum(known) if known and len(known) == len(files) else None,
        lowest=_text(leaf.type, min(_value(leaf.type, bound) for bound in lowest)) if lowest else None,
        highest=_text(leaf.type, max(_value(leaf.type, bound) for bound in highest)) if highest else None,
        bytes=_sum(sizes),
    )


def _nulls(leaf: _Leaf, file: Mapping[str, Any]) -> int | None:
    """Return a file's number of rows without a value in a column; None where the file does not tell.

    A file that knows nothing of a column was written before the column was added: all its rows lack it.
    """
    if leaf.is_repeated:
        return None
    counted, nulls = _of(file, "value_counts", leaf), _of(file, "null_value_counts", leaf)
    if counted is not None:
        # ORC does not count below a struct that is null itself: those rows lack the value, too.
        return None if nulls is None else int(file["record_count"] - counted + nulls)
    # Avro files hold no statistics at all.
    knows = bool(file.get("value_counts")) and _of(file, "column_sizes", leaf) is None
    return int(file["record_count"]) if knows else None


def _of(file: Mapping[str, Any], metric: str, leaf: _Leaf) -> Any:
    for pair in file.get(metric) or ():
        if pair["key"] == leaf.number:
            return pair["value"]
    return None


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _value(kind: Type, bound: bytes) -> Any:
    """Return a bound as a value that sorts as Spark sorts it."""
    match kind:
        case DecimalType(_, scale):
            return Decimal(int.from_bytes(bound, "big", signed=True)).scaleb(-scale)
        case Plain("boolean"):
            return bound != b"\x00"
        case Plain("string", None) | Plain("binary", None):
            return bound  # UTF-8 sorts as its bytes do
        case Plain("int" | "bigint" | "date" | "timestamp" | "timestamp_ntz"):
            return int.from_bytes(bound, "little", signed=True)
        case Plain("float" | "double"):
            return unpack("<f" if len(bound) == 4 else "<d", bound)[0]
    raise Undecided(f"bounds of type {kind}")


def _text(kind: Type, value: Any) -> str:
    """Return a value as Spark casts it to a text."""
    try:
        match kind:
            case DecimalType():
                return format(value, "f")
            case Plain("boolean"):
                return str(value).lower()
            case Plain("string" | "binary"):
                return str(value.decode())
            case Plain("date"):
                return (_DAY + timedelta(days=value)).isoformat()
            case Plain("timestamp" | "timestamp_ntz"):
                moment = _EPOCH + timedelta(microseconds=value)
                text = moment.strftime("%Y-%m-%d %H:%M:%S") if moment.year >= 1000 else None
                if text is None:
                    raise Undecided("a year of three digits")
                return f"{text}.{moment.microsecond:06d}".rstrip("0") if moment.microsecond else text
            case Plain("float"):
                return _as_java(value, _shortest_float(value))
            case Plain("double"):
                return _as_java(value, repr(value))
            case _:
                return str(value)
    except (OverflowError, UnicodeDecodeError) as error:
        raise Undecided(f"a bound of type {kind}: {error}") from error


def _as_java(value: float, shortest: str) -> str:
    """Return a number as Java writes it, by the fewest digits that tell it from others."""
    if not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(shortest), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = len(text) - 1 + int(exponent)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _shortest_float(value: float) -> str:
    """Return the fewest digits that tell a number of four bytes from its neighbours."""
    if not isfinite(value):
        return repr(value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if pack("<f", float(text)) == pack("<f", value))
