"""Find rows of a snapshot by key, in this process, reading as little as possible.

Files are left out by the bounds in their manifests, row groups by the statistics in their footers; of
the rest only the wanted columns are read. Columns are found by field id, so that old files of a table
whose columns were renamed or widened are read right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from esker.engine.iceberg.data_file import DataFile, opened
from esker.engine.iceberg.deleted import deleted_positions
from esker.engine.iceberg.manifests import FileEntry, LiveFiles, SpecOf
from esker.engine.iceberg.narrow import Kept, Part, read_parts
from esker.engine.iceberg.pruning import Candidates, Values
from esker.engine.iceberg.schema import FieldSchema, conform, field_id
from esker.engine.store import LOCAL, Store

_POOL = ThreadPoolExecutor(32, thread_name_prefix="esker-lookup")
_WHOLE = ThreadPoolExecutor(4, thread_name_prefix="esker-rows")
"""Few: each holds a row group with all its columns."""
_BESIDE = ThreadPoolExecutor(16, thread_name_prefix="esker-deletes")
_kept = Kept()
_PART = 16_384
"""So many rows of a row group are looked through at a time, where whole rows are read."""
_WORTH = 8
"""Finding a key in sorted rows takes about as long as looking at so many rows."""
_ROWS_HERE = 50_000
"""Rows of a file that are worth no thread of their own."""
_FEW = 1_000
"""Fewer rows are looked at one by one."""
_EXACT_KEYS = 20_000
"""Up to so many keys are looked for one by one in sorted rows."""


@dataclass(frozen=True)
class Found:
    """Live rows of one data file whose keys were asked for."""

    file: FileEntry
    positions: pa.Array
    asked: pa.Array
    """Index of each row's key among those asked for."""
    rows: pa.Table
    """The wanted columns."""

    def without(self, gone: BitMap64) -> Found | None:
        """Return the rows that do not lie at these positions; None when there are none."""
        live = pa.array([position not in gone for position in self.positions.to_pylist()], pa.bool_())
        if not pc.any(live).as_py():
            return None
        return Found(self.file, self.positions.filter(live), self.asked.filter(live), self.rows.filter(live))


class Keys:
    """The keys of a batch, each once, ready to be looked for."""

    def __init__(self, keys: pa.Table) -> None:
        self.names = keys.column_names
        self.values = joined(keys)
        self._columns = keys
        self.in_order: pa.Array | None = None
        """The values of the first column, each once, if they are not too many."""
        if len(keys) <= _EXACT_KEYS:
            self.in_order = pc.unique(keys.column(0)).sort()

    @cached_property
    def each(self) -> dict[str, Values]:
        """The values of each column, by its name."""
        return {name: Values(self._columns.column(name).combine_chunks()) for name in self.names}

    def candidates(self, schema: FieldSchema, spec_of: SpecOf) -> Candidates:
        """Return what tells the files of a table that may hold a key."""
        return Candidates(self._columns, self.each, schema, spec_of)


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
    may_hold = keys.candidates(schema, files.spec_of).may_be_in
    candidates = [file for file in files.data if whole or may_hold(file)]

    def look(file: FileEntry) -> Found | None:
        return _look_into(file, files, schema, keys, columns, whole)

    def is_ready(file: FileEntry) -> bool:
        # Few rows that are kept are looked at faster than a thread is woken, and threads would take turns.
        return files.store == LOCAL and file.records <= _ROWS_HERE and _kept.knows(file)

    begun = {file: _POOL.submit(look, file) for file in candidates if not is_ready(file)}
    done = {file: look(file) for file in candidates if file not in begun}
    found = [begun[file].result() if file in begun else done[file] for file in candidates]
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


def live_rows(
    files: LiveFiles, schema: FieldSchema, chosen: Sequence[FileEntry], columns: Sequence[str] | None = None
) -> pa.Table:
    """Return all live rows of some data files: whole, or some columns of them.

    Raises FileNotFoundError when files have been expired meanwhile.
    """
    names = schema.arrow.names if columns is None else columns
    empty = _none_of(schema, names)
    parts = _WHOLE.map(lambda file: _live_rows_of(files, schema, file, names), chosen)
    return pa.concat_tables([part.cast(empty.schema) for part in parts] or [empty])


def live_parts(files: LiveFiles, schema: FieldSchema, file: FileEntry) -> Iterator[pa.Table]:
    """Yield all live rows of a data file in their order, some thousand at a time.

    Memory does not grow with the file. Raises FileNotFoundError when files have been expired meanwhile.
    """
    gone, start = deleted_positions(files, file), 0
    with opened(files.store, file) as parquet:
        stored = _stored_names(parquet, schema, schema.arrow.names)
        present = [name for name in stored.values() if name is not None]
        for group in range(parquet.metadata.num_row_groups):
            for batch in parquet.iter_batches(_PART, [group], present or None):
                rows = _as_now(pa.Table.from_batches([batch]), stored, schema).cast(schema.arrow)
                places = range(start, start + len(rows))
                start += len(rows)
                if gone:
                    rows = rows.filter(pa.array([place not in gone for place in places], pa.bool_()))
                yield rows


def some_rows(files: LiveFiles, schema: FieldSchema, limit: int) -> pa.Table:
    """Return some live rows of a table, whole; no more is read than that takes, a part of a file at a time.

    Raises FileNotFoundError when files have been expired meanwhile.
    """
    found: list[pa.Table] = []
    lacking = limit
    for rows in chain.from_iterable(live_parts(files, schema, file) for file in files.data):
        found.append(rows.slice(0, lacking))
        lacking -= len(found[-1])
        if not lacking:
            break
    return pa.concat_tables(found) if found else _none_of(schema, schema.arrow.names)


def _none_of(schema: FieldSchema, names: Sequence[str]) -> pa.Table:
    """Return columns without a row."""
    return pa.schema([schema.arrow.field(name) for name in names]).empty_table()


def lacks_columns(files: LiveFiles, schema: FieldSchema, file: FileEntry) -> bool:
    """Tell whether a file has not all columns: perhaps its partition has the values of one."""
    with opened(files.store, file) as parquet:
        return None in _stored_names(parquet, schema, schema.arrow.names).values()


def can_read(files: LiveFiles, schema: FieldSchema, chosen: Sequence[FileEntry]) -> bool:
    """Tell whether this process knows how to read files as the table's other readers do."""
    is_parquet = all(file.format == "parquet" for file in chosen)
    return schema.is_complete and is_parquet and not files.has_equality_deletes


def _live_rows_of(files: LiveFiles, schema: FieldSchema, file: FileEntry, names: Sequence[str]) -> pa.Table:
    with opened(files.store, file) as parquet:
        stored = _stored_names(parquet, schema, names)
        present = [name for name in stored.values() if name is not None]
        read = parquet.read_row_groups(list(range(parquet.metadata.num_row_groups)), present or None)
    rows = _as_now(read, stored, schema)
    gone = deleted_positions(files, file)
    if not gone:
        return rows
    return rows.filter(pa.array([place not in gone for place in range(len(rows))], pa.bool_()))


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
        groups, starts = _groups(parquet, schema, None if whole else keys)
        if not groups:
            return None
        # From a store, deletes come while the columns do; from a disk, only if they are needed.
        beside = None if files.store == LOCAL else _BESIDE.submit(deleted_positions, files, file)
        stored = _stored_names(parquet, schema, [*keys.names, *columns])
        present = [name for name in stored.values() if name is not None]
        if whole or not present:
            # All of a table would only push everything else out of what is kept.
            parts = read_parts(parquet, groups, present or None)
        else:
            parts = _kept.read(file, parquet, groups, present)
    places, asked, rows = [], [], []
    found_in = _find(parts, keys, stored, schema, whole=whole)
    for part, start, (at, which) in zip(parts, starts, found_in, strict=True):
        if len(at):
            places.append(pc.add(at, start))
            asked.append(which)
            rows.append(part.rows.take(at))
    if not places:
        return None
    found = Found(
        file,
        pa.concat_arrays(places),
        pa.concat_arrays(asked),
        _as_now(pa.concat_tables(rows), {name: stored[name] for name in columns}, schema),
    )
    gone = beside.result() if beside is not None else deleted_positions(files, file)
    return found.without(gone) if gone else found


def _find(
    parts: Sequence[Part], keys: Keys, stored: Mapping[str, str | None], schema: FieldSchema, *, whole: bool
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield for each part the places of rows in it, and which keys they have: those asked for, or all."""
    nears = [None if whole else _near(part, keys, stored[keys.names[0]]) for part in parts]
    values = []
    for part, near in zip(parts, nears, strict=True):
        rows = part.rows if near is None else part.rows.take(near)
        values.append(joined(_as_now(rows, {name: stored[name] for name in keys.names}, schema)))
    # All parts at once: to look into many keys takes a table of them, whose making takes time.
    asked = pc.index_in(pa.concat_arrays(values), value_set=keys.values)
    start = 0
    for near, here in zip(nears, values, strict=True):
        which = asked.slice(start, len(here))
        start += len(here)
        if whole:
            yield pa.array(range(len(which)), pa.int64()), which
            continue
        hits = pc.indices_nonzero(pc.is_valid(which))
        yield (hits if near is None else near.take(hits)).cast(pa.int64()), which.take(hits)


def _near(part: Part, keys: Keys, column: str | None) -> pa.Array | None:
    """Return the places of rows whose first key is asked for, in a part that is sorted by it.

    None where it is not, or where it is faster to look at every row.
    """
    if column is None or keys.in_order is None or len(part.rows) < _FEW:
        return None
    if part.rows.column(column).num_chunks != 1:
        return None
    kind = part.rows.column(column).type
    if kind != keys.in_order.type or not _is_searchable(kind) or not part.is_sorted(column):
        return None
    values = part.rows.column(column).chunk(0)
    first = pc.search_sorted(keys.in_order, values[0]).as_py()
    last = pc.search_sorted(keys.in_order, values[-1], side="right").as_py()
    if (last - first) * _WORTH > len(values):
        return None
    wanted = keys.in_order.slice(first, last - first)
    starts = pc.search_sorted(values, wanted)
    ends = pc.search_sorted(values, wanted, side="right")
    counts = pc.subtract(ends, starts)
    if not len(counts) or pc.max(counts).as_py() <= 1:
        return starts.filter(pc.equal(counts, 1))
    if pc.sum(counts).as_py() * 2 > len(values):
        return None
    spans = zip(starts.to_pylist(), ends.to_pylist(), strict=True)
    return pa.array([place for start, end in spans for place in range(start, end)], pa.uint64())


def _is_searchable(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_integer(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )


def _groups(parquet: DataFile, schema: FieldSchema, keys: Keys | None) -> tuple[list[int], list[int]]:
    """Return the row groups that may hold a key, or all, and the position of the first row of each."""
    leaves = {name: _leaf(parquet, schema, name) for name in (keys.names if keys is not None else ())}
    groups: list[int] = []
    starts: list[int] = []
    start = 0
    for group in range(parquet.metadata.num_row_groups):
        about = parquet.metadata.row_group(group)
        if keys is None or all(
            keys.each[name].may_be_among(about.column(leaf).statistics)
            for name, leaf in leaves.items()
            if leaf is not None
        ):
            groups.append(group)
            starts.append(start)
        start += about.num_rows
    return groups, starts


def _leaf(parquet: DataFile, schema: FieldSchema, name: str) -> int | None:
    """Return the place of a top-level column among the leaves of a file."""
    stored = _stored_name(parquet.schema_arrow, schema, name)
    columns = parquet.metadata.schema
    paths = [columns.column(index).path for index in range(len(columns))]
    return paths.index(stored) if stored in paths else None


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
