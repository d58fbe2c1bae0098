"""Partition transforms, such as `bucket[16]`, computed in this process."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform

_WITH_NUMBER = {"bucket": transform.bucket, "truncate": transform.truncate}
_OF_TIME = {
    "year": transform.year,
    "month": transform.month,
    "day": transform.day,
    "hour": transform.hour,
}


def transformed(rows: pa.Table, column: str | None, name: str) -> pa.Array:
    """Return the values of a partition field, such as `bucket[16]` of a column; None is a dropped one."""
    if name == "void" or column is None:
        return pa.nulls(len(rows), pa.int32())
    first, *inner = column.split(".") if column not in rows.column_names else [column]
    source = rows.column(first)
    for part in inner:
        source = pc.struct_field(source, part)
    source = source.combine_chunks()
    kind, _, number = name.rstrip("]").partition("[")
    if kind in _WITH_NUMBER:
        return _WITH_NUMBER[kind](source, int(number))
    if kind in _OF_TIME:
        return _OF_TIME[kind](source)
    if kind != "identity":
        raise ValueError(f"unknown partition transform {name}")
    return source
