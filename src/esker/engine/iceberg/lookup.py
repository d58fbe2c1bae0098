"""Find rows of a snapshot by key, in this process, reading as little as possible.

Files are left out by the bounds in their manifests, row groups by the statistics in their footers; of
the rest only the wanted columns are read. Columns are found by field id, so that old files of a table
whose columns were renamed or widened are read right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from esker.engine.iceberg.data_file import DataFile, opened
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.engine.iceberg.narrow import Kept
from esker.engine.iceberg.positions import deleted_positions
from esker.engine.iceberg.schema import FieldSchema, conform, field_id
from esker.engine.store import LOCAL, Store

_POOL = ThreadPoolExecutor(32, thread_name_prefix="esker-lookup")
_WHOLE = ThreadPoolExecutor(4, thread_name_prefix="esker-rows")
"""Few: each holds a row group with all its columns."""
_BESIDE = ThreadPoolExecutor(16, thread_name_prefix="esker-deletes")
_kept = Kept()
_ALL_DIGITS = Context(prec=38)
"""Python rounds to 28 digits unless told otherwise."""
_PART = 16_384
"""So many rows of a row group are looked through at a time, where whole rows are read."""
_EXACT_KEYS = 20_000
"""Up to so many keys, each is compared with the bounds; beyond, only the lowest and the highest."""


@dataclass(frozen=True)
class Found:
    """Live rows of one data file whose keys were asked for."""

    file: FileEntry
    positions: pa.Array
    asked: pa.Array
    """Index of each row's key among those asked for."""
    rows: pa.Table
    """The wanted columns."""


class Keys:
    """The keys of a batch, each once, ready to be looked for."""

    def __init__(self, keys: pa.Table) -> None:
        self.names = keys.column_names
        self.values = joined(keys)
        first = keys.column(0)
        self._first: list[Any] | None = None
        if len(keys):
            if len(keys) <= _EXACT_KEYS:
                self._first = sorted(set(first.to_pylist()))
            else:
                bounds = pc.min_max(first)
                self._range = bounds["min"].as_py(), bounds["max"].as_py()

    def may_lie_between(self, low: Any, high: Any) -> bool:
        """Tell whether the first column of any key may lie inside bounds."""
        if self._first is None:
            return not (self._range[1] < low or high < self._range[0])
        at = bisect_left(self._first, low)
        return at < len(self._first) and bool(self._first[at] <= high)


def joined(keys: pa.Table) -> pa.Array:
    """Return keys as one array; keys of several columns as texts that are equal only for equal keys."""
    columns = [column.combine_chunks() for column in keys.columns]
    if len(columns) == 1:
        return columns[0]
    texts = []
    for column in columns:
        text = column if pa.types.is_string(column.type) else column.cast(pa.string())
        texts += [pc.binary_length(text).cast(pa.string()), text]
    return pc.binary_join_element_wise(*texts, ":")


def look_up(
    files: LiveFiles, schema: FieldSchema, keys: Keys, columns: Sequence[str], *, whole: bool = False
) -> tuple[list[Found], list[FileEntry]]:
    """Return the live rows with these keys, and all data files that were looked into.

    With `whole`, all other live rows too: `asked` is null for them.

    Raises FileNotFoundError when files have been expired meanwhile.
    """
    first = schema.arrow.field(keys.names[0])
    decode = _decoder(first.type)
    number = field_id(first)

    def may_hold(file: FileEntry) -> bool:
        low, high = file.lower.get(number), file.upper.get(number)
        if low is None or high is None or decode is None:
            return True
        return keys.may_lie_between(*decode(low, high))

    candidates = [file for file in files.data if whole or may_hold(file)]
    found = _POOL.map(lambda file: _look_into(file, files, schema, keys, columns, whole), candidates)
    return [rows for rows in found if rows is not None], candidates


def read_rows(
    store: Store,
    schema: FieldSchema,
    wanted: Sequence[tuple[FileEntry, BitMap64]],
    columns: Sequence[str] | None = None,
) -> list[pa.Table]:
    """Return rows of data files by their positions, in that order: whole, or some columns of them."""
    names = schema.arrow.names if columns is None else columns
    return list(_WHOLE.map(lambda each: _rows_at(store, schema, each[0], each[1], names), wanted))


def _rows_at(
    store: Store, schema: FieldSchema, file: FileEntry, positions: BitMap64, names: Sequence[str]
) -> pa.Table:
    parts: list[pa.Table] = []
    with opened(store, file) as parquet:
        start = 0
        for group in range(parquet.metadata.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            here = positions & BitMap64(range(start, start + count))
            if here:
                wanted = [position - start for position in here]
                parts += _pick(parquet, group, wanted, _stored_names(parquet, schema, names), schema)
            start += count
    return pa.concat_tables(parts)


def _pick(
    parquet: DataFile,
    group: int,
    wanted: list[int],
    stored: Mapping[str, str | None],
    schema: FieldSchema,
) -> Iterator[pa.Table]:
    """Yield rows of a group by their places in it; only a part of the group is in memory at a time."""
    present = [name for name in stored.values() if name is not None]
    first = passed = 0
    for batch in parquet.iter_batches(_PART, [group], present or None):
        last = bisect_left(wanted, passed + len(batch), first)
        if first < last:
            places = pa.array([place - passed for place in wanted[first:last]], pa.int64())
            yield _as_now(pa.Table.from_batches([batch]).take(places), stored, schema)
        first, passed = last, passed + len(batch)
        if first == len(wanted):
            return


def _look_into(
    file: FileEntry,
    files: LiveFiles,
    schema: FieldSchema,
    keys: Keys,
    columns: Sequence[str],
    whole: bool,
) -> Found | None:
    with opened(files.store, file) as parquet:
        groups, positions = _groups(parquet, schema, None if whole else keys)
        if not groups:
            return None
        # From a store, deletes come while the columns do; from a disk, only if they are needed.
        beside = None if files.store == LOCAL else _BESIDE.submit(deleted_positions, files, file)
        # All of a table would only push everything else out of what is kept.
        kept = None if whole else _kept
        rows = _read(file, parquet, groups, schema, [*keys.names, *columns], kept)
    asked = pc.index_in(joined(rows.select(keys.names)), value_set=keys.values)
    hits = pa.array(range(len(asked)), pa.int64()) if whole else pc.indices_nonzero(pc.is_valid(asked))
    if not len(hits):
        return None
    at = _in_file(hits, positions)
    gone = beside.result() if beside is not None else deleted_positions(files, file)
    if gone:
        live = pa.array([position not in gone for position in at.to_pylist()], pa.bool_())
        hits, at = hits.filter(live), at.filter(live)
        if not len(hits):
            return None
    return Found(file, at, asked.take(hits), rows.select(list(columns)).take(hits))


def _in_file(hits: pa.Array, read: list[range]) -> pa.Array:
    """Return positions among the rows that were read as positions in the file."""
    places: list[int] = []
    numbers = hits.to_pylist()
    first = passed = 0
    for rows in read:
        last = bisect_left(numbers, passed + len(rows), first)
        places += [number - passed + rows.start for number in numbers[first:last]]
        first, passed = last, passed + len(rows)
    return pa.array(places, pa.int64())


def _groups(parquet: DataFile, schema: FieldSchema, keys: Keys | None) -> tuple[list[int], list[range]]:
    """Return the row groups that may hold a key, or all, and the positions of their rows."""
    column = _leaf(parquet, schema, keys.names[0]) if keys is not None else None
    groups: list[int] = []
    positions: list[range] = []
    start = 0
    for group in range(parquet.metadata.num_row_groups):
        about = parquet.metadata.row_group(group)
        statistics = about.column(column).statistics if column is not None else None
        if (
            keys is None
            or statistics is None
            or not statistics.has_min_max
            or keys.may_lie_between(statistics.min, statistics.max)
        ):
            groups.append(group)
            positions.append(range(start, start + about.num_rows))
        start += about.num_rows
    return groups, positions


def _leaf(parquet: DataFile, schema: FieldSchema, name: str) -> int | None:
    """Return the place of a top-level column among the leaves of a file."""
    stored = _stored_name(parquet.schema_arrow, schema, name)
    columns = parquet.metadata.schema
    paths = [columns.column(index).path for index in range(len(columns))]
    return paths.index(stored) if stored in paths else None


def _read(
    file: FileEntry,
    parquet: DataFile,
    groups: list[int],
    schema: FieldSchema,
    names: Sequence[str],
    kept: Kept | None,
) -> pa.Table:
    """Read columns by field id, as the table's types now; a column that the file lacks is null."""
    stored = _stored_names(parquet, schema, names)
    present = [name for name in stored.values() if name is not None]
    if kept is not None and present:
        return _as_now(kept.read(file, parquet, groups, present), stored, schema)
    return _as_now(parquet.read_row_groups(groups, present or None), stored, schema)


def _as_now(read: pa.Table, stored: Mapping[str, str | None], schema: FieldSchema) -> pa.Table:
    """Return rows of a file as the table's types now. `stored` has the file's names of the columns."""
    columns = []
    for name, source in stored.items():
        field = schema.arrow.field(name)
        if source is None:
            columns.append(pa.nulls(len(read), field.type))
        else:
            column = read.column(source)
            if pa.types.is_nested(field.type):
                column = pa.chunked_array([conform(part, field.type) for part in column.chunks], field.type)
            columns.append(column.cast(field.type))
    return pa.table(columns, names=list(stored))


def _stored_names(parquet: DataFile, schema: FieldSchema, names: Sequence[str]) -> dict[str, str | None]:
    """Return the names that columns have in a file; None for those that it lacks."""
    here = parquet.schema_arrow
    return {name: _stored_name(here, schema, name) for name in names}


def _stored_name(stored: pa.Schema, schema: FieldSchema, name: str) -> str | None:
    wanted = schema.arrow.field(name)
    ids = {field_id(field): field.name for field in stored}
    if set(ids) == {-1}:
        # Files that were taken into the table as they were name no ids.
        known = schema.names.get(field_id(wanted), (wanted.name,))
        return next((name for name in known if name in stored.names), None)
    return ids.get(field_id(wanted))


def _decoder(kind: pa.DataType) -> Callable[[bytes, bytes], tuple[Any, Any]] | None:
    """Return how to read a column's bounds in a manifest; None where they are not used."""
    if pa.types.is_string(kind):
        # Bounds are cut to whole characters, the upper one upwards.
        return lambda low, high: (low.decode(errors="replace"), high.decode(errors="replace"))
    if pa.types.is_int32(kind) or pa.types.is_int64(kind):
        return lambda low, high: (
            int.from_bytes(low, "little", signed=True),
            int.from_bytes(high, "little", signed=True),
        )
    if pa.types.is_decimal(kind):
        return lambda low, high: (_decimal(low, kind.scale), _decimal(high, kind.scale))
    return None


def _decimal(bound: bytes, scale: int) -> Decimal:
    return Decimal(int.from_bytes(bound, "big", signed=True)).scaleb(-scale, _ALL_DIGITS)
