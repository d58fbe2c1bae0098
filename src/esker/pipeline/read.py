"""Read a pipeline's source into this process, without loading it anywhere."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from esker.contracts.check import BAD, check
from esker.contracts.rules import RowRules
from esker.engine.compat import arrow_schema, to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import BadRows, NoColumns, PartsMissing, UnsuitableData
from esker.ledger.entry import Position
from esker.load.rejected import SIDE_COLUMNS
from esker.pipeline.plan import has_rows, open_reader, typed
from esker.pipeline.tables import table_of
from esker.project.types import Column, columns_as_json, quoted
from esker.sources import Reader, Slice


def read_source(engine: Engine, name: str, limit: int | None = None) -> pa.Table:
    """Return all that a source holds now, loaded or not, or some rows of it.

    Raises BadRows for records that cannot be read, and PartsMissing when some could not be had.
    """
    found: list[pa.Table] = []
    rows, position = 0, None
    with closing(open_reader(engine, name)) as source:
        has_more = True
        while has_more and (limit is None or rows < limit):
            fetched = source.fetch(source.plan(position))
            if fetched.failures:
                raise PartsMissing(name, fetched.failures)
            has_more = fetched.has_more
            for piece in fetched.slices:
                part = _read(engine, name, source, piece, None if limit is None else limit - rows)
                found.append(part)
                rows += len(part)
                position = _behind(source, piece)
    if not found:
        return pa.table({})
    try:
        return pa.concat_tables(found, promote_options="permissive")
    except pa.ArrowException as error:
        raise UnsuitableData(f"Parts of the source have types that do not go together: {error}") from error


def _behind(source: Reader, piece: Slice) -> Position | None:
    source.settled(piece)
    return piece.end


def _read(engine: Engine, name: str, source: Reader, piece: Slice, limit: int | None) -> pa.Table:
    pipeline = engine.project.pipeline(name)
    table = table_of(engine.project, pipeline)
    engine.open_catalog(table.catalog)
    sent = typed(engine, source, [piece], pipeline, find_table(engine, table))
    columns = tuple(Column(column.name, column.type) for column in sent.columns)
    if not columns:
        if has_rows(engine, source, [piece]):
            raise NoColumns(name, str(table))
        return pa.table({})
    wanted = arrow_schema(columns_as_json(columns))
    with explained("cannot read the source", engine.log, reads_source=True):
        rows = check(source.read(piece, columns), columns, RowRules(), SIDE_COLUMNS, ()).all_told()
        names = [quoted(column.name) for column in columns]
        rows = rows.select(*names, *([BAD] if BAD in rows.columns else []))
        fitted = to_arrow(rows if limit is None else rows.limit(limit))
    if BAD in fitted.column_names:
        bad = fitted.column(BAD)
        if bad.null_count < len(bad):
            reasons = sorted(row["reason"] for row in bad.filter(pc.is_valid(bad)).to_pylist())
            examples = list(dict.fromkeys((reasons[0], reasons[-1])))
            raise BadRows(name, len(reasons), len(fitted), examples)
    return fitted.select(wanted.names).cast(wanted)
