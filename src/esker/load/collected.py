"""The rows of a small keyed batch, brought into this process and fitted to the table."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esker.contracts.arrow_check import surely_keep
from esker.contracts.check import BAD
from esker.contracts.rules import RowRules, Tally
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.schema import FieldSchema
from esker.engine.progress import watched
from esker.errors import BadRows
from esker.load.batch import Batch, Loading
from esker.load.comparison import NO_KEY, NO_ORDER, Comparison
from esker.load.diff import KeyRules
from esker.load.incoming import ARRIVAL, DELETED, DeleteMark, incoming
from esker.load.unknown import NEW_COLUMN, UNKNOWN
from esker.project.types import has_required
from esker.sources import ORIGIN, UNTIL


@dataclass(frozen=True)
class Collected:
    """Rows in the order of arrival, and those that cannot be loaded."""

    rows: pa.Table
    numbers: pa.Array
    """Each row's place in the batch."""
    deletes: pa.Array
    """Which rows are deletes."""
    until: pa.Array | None
    """When each row became what it is, at the latest, where the source knows it."""
    rejected: pa.Table | None
    """Rows that are bad, without a key, or with more columns than the table, as the quarantine keeps them."""
    protected: pa.Table | None = None
    """Keys of rows that are bad: a complete batch does not lack them."""
    tally: Tally = field(default_factory=Tally)

    @property
    def read(self) -> int:
        return len(self.rows) + (len(self.rejected) if self.rejected is not None else 0)


def collect(
    loading: Loading,
    batch: Batch,
    given: Comparison,
    mark: DeleteMark,
    schema: FieldSchema,
    most: float = math.inf,
) -> Collected:
    """Bring a batch's rows here, or raise BadRows. Of a batch of unknown size, one more than `most`."""
    read = _read(loading, batch, given, mark, schema, most)
    numbers = pa.array(range(len(read.rows)), pa.int64())
    lacking = _keyless(read.rows, read.deletes, given.rules)
    if lacking is None and read.unknown is None and read.bad is None:
        rows = _stored(read.rows, read.deletes, schema)
        return Collected(rows, numbers, read.deletes, read.until, None, tally=read.tally)
    parts = []
    protected = None
    kept = pa.repeat(pa.scalar(True), len(read.rows))
    if read.unknown is not None:
        kept = pc.is_null(read.unknown)
        told = read.unknown.filter(pc.is_valid(read.unknown))
        rules = pa.array([[NEW_COLUMN]] * len(told), pa.list_(pa.string()))
        parts.append(_told(told, rules, read, numbers, pc.is_valid(read.unknown)))
    if read.bad is not None:
        which = pc.is_valid(read.bad)
        told = read.bad.filter(which)
        parts.append(_told(told, told.field("rules"), read, numbers, which))
        kept = pc.and_(kept, pc.is_null(read.bad))
    if lacking is not None:
        parts.append(_rejected(read.rows, numbers, read.origins, pc.and_(kept, lacking), given.rules))
        kept = pc.and_(kept, pc.invert(lacking))
    rejected = pa.concat_tables(parts)
    if given.rules.is_complete:
        protected = read.rows.filter(pc.invert(kept)).select(list(given.rules.key)).drop_null()
    tally = replace(read.tally, rows=len(read.rows), rejected=len(rejected))
    deletes = read.deletes.filter(kept)
    until = read.until.filter(kept) if read.until is not None else None
    rows = _stored(read.rows.filter(kept), deletes, schema)
    return Collected(rows, numbers.filter(kept), deletes, until, rejected, protected, tally)


@dataclass(frozen=True)
class _Read:
    """The fitted rows in the order of arrival."""

    rows: pa.Table
    """Nothing in them is required, at any depth: bad rows and deletes may lack what others must have."""
    deletes: pa.Array
    """Which rows are deletes."""
    origins: pa.Array
    until: pa.Array | None = None
    """When each row became what it is, at the latest, where the source knows it."""
    unknown: pa.Array | None = None
    """Reason and payload of rows that carry columns which the table lacks; None when there are none."""
    bad: pa.Array | None = None
    """Rules, reason and payload of rows that are bad; None when there are none."""
    tally: Tally = field(default_factory=Tally)


def _read(
    loading: Loading, batch: Batch, given: Comparison, mark: DeleteMark, schema: FieldSchema, most: float
) -> _Read:
    names = [column.name for column in batch.columns]
    wanted = pa.schema([_optional(schema.arrow.field(name)) for name in names])
    if batch.arrow is not None and mark.when is None:
        fitted = _as(batch.arrow, wanted)
        # Of deletes less is asked: where all keep to the rules, they do too.
        if (
            fitted is not None
            and not _lacks(fitted, batch, given.rules)
            and surely_keep(fitted, loading.rules)
        ):
            origins = pa.nulls(len(fitted), pa.string())
            tally = Tally(len(fitted), 0, {rule.name: 0 for rule in loading.rules.all})
            return _Read(fitted, _marked(fitted, mark), origins, _until(batch.arrow), tally=tally)
    engine = loading.engine
    frame = incoming(batch.frame(), batch.columns, given.rules, mark, loading.rules)
    if batch.weight.may_exceed(most):
        # Nobody knows how many they are: more than fits are not brought here.
        frame = frame.limit(int(most) + 1)
    with (
        explained("cannot read the rows", engine.log, reads_source=True),
        watched(engine, batch.progress),
    ):
        found = to_arrow(frame)
    if found.column(BAD).null_count < len(found) and not loading.rejects(batch):
        raise _failed(loading.name, found)
    found = found.sort_by([(name, "ascending") for name in ARRIVAL])
    rows = found.select(names).cast(wanted)
    deletes, origins = (found.column(name).combine_chunks() for name in (DELETED, ORIGIN))
    unknown = found.column(UNKNOWN).combine_chunks() if UNKNOWN in found.column_names else None
    if unknown is not None and unknown.null_count == len(unknown):
        unknown = None
    bad = found.column(BAD).combine_chunks()
    return _Read(
        rows,
        deletes,
        origins,
        _until(found),
        unknown,
        bad if bad.null_count < len(bad) else None,
        _tally(found, loading.rules),
    )


def _until(rows: pa.Table) -> pa.Array | None:
    return rows.column(UNTIL).combine_chunks() if UNTIL in rows.column_names else None


def _lacks(rows: pa.Table, batch: Batch, rules: KeyRules) -> bool:
    """Tell whether a value may be missing that is required, and is no part of the key."""
    return any(
        has_required(column.type)
        or (column.required and column.name not in rules.key and rows.column(column.name).null_count)
        for column in batch.columns
    )


def _optional(field: pa.Field) -> pa.Field:
    """Return a field that may be null, and whatever is inside it, too; keys of maps never may."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_optional(inner) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_field, _optional(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_optional(kind.value_field))
    return field.with_type(kind).with_nullable(True)


def _stored(rows: pa.Table, deletes: pa.Array, schema: FieldSchema) -> pa.Table:
    """Return rows that are good as the table has them: with the fields inside that it requires."""
    for index, name in enumerate(rows.column_names):
        field, wanted = rows.schema.field(index), schema.arrow.field(name).with_nullable(True)
        if field.type == wanted.type:
            continue
        column = rows.column(name)
        if pc.any(deletes).as_py():
            # Of a delete nothing but the key counts, and it may lack what other rows must have.
            column = pc.if_else(deletes, pa.scalar(None, field.type), column)
        parts = [_demanding(part, wanted.type) for part in column.chunks]
        rows = rows.set_column(index, wanted, pa.chunked_array(parts, wanted.type))
    return rows


def _demanding(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return values as a type that requires fields inside.

    Arrow casts and writes no required field that is null where the struct around it has no value, which
    is how Spark leaves it: such a field gets a value that nobody sees.
    """
    count = len(values)
    if pa.types.is_struct(wanted):
        whole = values.drop_null()
        parts = [_demanding(whole.field(index), field.type) for index, field in enumerate(wanted)]
        loose = [field.with_nullable(True) for field in wanted]
        # The cast tells of what is really missing.
        made = pa.StructArray.from_arrays(parts, fields=loose).cast(wanted)
        if len(made) == count:
            return made
        is_there = values.is_valid()
        places = pc.subtract(pc.cumulative_sum(is_there.cast(pa.int64())), 1)
        # A null that Arrow makes has such values inside.
        made = pa.concat_arrays([made, pa.array([None], wanted)])
        return made.take(pc.if_else(is_there, places, len(made) - 1))
    if pa.types.is_list(wanted) or pa.types.is_map(wanted):
        # Taken anew they begin at the first of their elements, and a null has none.
        values = values.take(pa.array(range(count), pa.int64()))
        offsets, missing = values.offsets, values.is_null()
        if pa.types.is_map(wanted):
            items = _demanding(values.items, wanted.item_type)
            return pa.MapArray.from_arrays(offsets, values.keys, items, type=wanted, mask=missing)
        elements = _demanding(values.values, wanted.value_type)
        return pa.ListArray.from_arrays(offsets, elements, type=wanted, mask=missing)
    return values.cast(wanted)


def _failed(pipeline: str, found: pa.Table) -> BadRows:
    bad = found.filter(pc.is_valid(found.column(BAD)))
    reasons = [row["reason"] for row in bad.column(BAD).to_pylist()]
    names = [(origin or "").rpartition("/")[2] for origin in bad.column(ORIGIN).to_pylist()]
    told = [f"{name}: {why}" if name else why for name, why in zip(names, reasons, strict=True)]
    return BadRows(pipeline, len(bad), len(found), sorted({min(told), max(told)}))


def _tally(found: pa.Table, rules: RowRules) -> Tally:
    bad = len(found) - found.column(BAD).null_count
    if rules.columns[0] not in found.column_names:
        return Tally(len(found), bad)
    broken = [pc.not_equal(found.column(name), 0) for name in rules.columns]
    any_broken = found.filter(reduce(pc.or_, broken)).select(list(rules.columns))
    return Tally(len(found), bad, rules.tally(any_broken.to_pydict()))


def _marked(rows: pa.Table, mark: DeleteMark) -> pa.Array:
    if mark.column is None:
        return pa.repeat(pa.scalar(False), len(rows))
    return rows.column(mark.column).cast(pa.bool_()).fill_null(False).combine_chunks()


def _keyless(rows: pa.Table, deletes: pa.Array, rules: KeyRules) -> pa.Array | None:
    """Return which rows lack a part of their key, or the moment of a version; None when none does."""
    lacking = None
    if rules.dates is not None and rows.column(rules.dates).null_count:
        lacking = pc.and_(pc.is_null(rows.column(rules.dates)), pc.invert(deletes))
    for name in rules.key:
        column = rows.column(name)
        if column.null_count:
            here = pc.is_null(column)
            lacking = here if lacking is None else pc.or_(lacking, here)
    if lacking is None or not pc.any(lacking).as_py():
        return None
    return lacking.combine_chunks() if isinstance(lacking, pa.ChunkedArray) else lacking


def _as(rows: pa.Table, wanted: pa.Schema) -> pa.Table | None:
    """Return rows as other types where nothing can be lost by that, else None."""
    columns = []
    given = {name.lower(): name for name in rows.column_names}
    for target in wanted:
        name = given.get(target.name.lower())
        if name is None:
            columns.append(pa.nulls(len(rows), target.type))
            continue
        column = rows.column(name)
        if column.type != target.type:
            if not _is_wider(column.type, target.type):
                return None
            column = column.cast(target.type)
        columns.append(column)
    return pa.table(columns, schema=wanted)


def _is_wider(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_integer(given):
        return bool(types.is_integer(wanted) and given.bit_width < wanted.bit_width)
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        return given.unit in ("s", "ms", "us") and (given.tz is None) == (wanted.tz is None)
    if types.is_large_string(given) or types.is_string_view(given):
        return bool(types.is_string(wanted))
    return bool(types.is_null(given) or (types.is_float32(given) and types.is_float64(wanted)))


def _rejected(
    rows: pa.Table, numbers: pa.Array, origins: pa.Array, which: pa.Array, rules: KeyRules
) -> pa.Table:
    bad = rows.filter(which)
    reasons, broken = [], []
    for row in bad.select([*rules.key, *([rules.dates] if rules.dates else [])]).to_pylist():
        missing = [name for name in rules.key if row[name] is None]
        role = NO_KEY if missing else NO_ORDER
        columns = ", ".join(f'"{name}"' for name in missing or [rules.dates or ""])
        broken.append([role])
        reasons.append(f"the {role} column {columns} has no value")
    payloads = [_payload(row) for row in bad.to_pylist(maps_as_pydicts="lossy")]
    return pa.table(
        {
            "row": numbers.filter(which),
            "origin": origins.filter(which),
            "rules": pa.array(broken, pa.list_(pa.string())),
            "reason": pa.array(reasons, pa.string()),
            "payload": pa.array(payloads, pa.string()),
        }
    )


def _payload(row: Mapping[str, Any]) -> str:
    """Return a row as JSON, with all values as texts, like those that Spark writes."""
    return json.dumps({name: _text(value) for name, value in row.items()}, ensure_ascii=False)


def _text(value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(name): _text(inner) for name, inner in value.items()}
        case list():
            return [_text(inner) for inner in value]
    return str(value)


def _told(told: pa.Array, rules: pa.Array, read: _Read, numbers: pa.Array, which: pa.Array) -> pa.Table:
    """Return rows with a reason and a payload as the quarantine keeps them."""
    return pa.table(
        {
            "row": numbers.filter(which),
            "origin": read.origins.filter(which),
            "rules": rules.cast(pa.list_(pa.string())),
            "reason": told.field("reason").cast(pa.string()),
            "payload": told.field("payload").cast(pa.string()),
        }
    )
