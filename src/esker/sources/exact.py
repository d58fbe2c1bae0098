"""Arrow values as another type, where no value is changed by that."""

from __future__ import annotations

import pyarrow as pa

from esker.errors import UnsuitableData


def exactly(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Return a column's values as a type, or raise UnsuitableData where one would be another then."""
    if column.type == kind:
        return column
    try:
        if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
            # Arrow wants room for every number that the type could hold.
            column = column.cast(pa.decimal256(76, kind.scale))
        elif pa.types.is_decimal(kind) and pa.types.is_floating(column.type):
            # As it is written: Arrow rounds what is too long, and takes 0.1 for 0.1000000000000000055.
            column = column.cast(pa.string())
        return column.cast(kind, safe=True)
    except pa.ArrowException as error:
        raise UnsuitableData(f'Column "{name}": {error}') from error


def with_columns(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return rows with these columns, or raise UnsuitableData where a value would be changed by that."""
    columns = [
        exactly(rows.column(field.name), field.type, field.name)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)
