"""Partition values, computed from rows in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform

from esker.engine.iceberg.java import each

_WITH_NUMBER = {"bucket": transform.bucket, "truncate": transform.truncate}
_OF_TIME = {
    "year": transform.year,
    "month": transform.month,
    "day": transform.day,
    "hour": transform.hour,
}


def split(rows: pa.Table, spec: Any, schema: Any) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """Return the rows of each partition, with the partition's values. Rows keep their order."""
    fields = list(each(spec.fields()))
    if not fields or not len(rows):
        return [((), rows)] if len(rows) else []
    names = [f"p{index}" for index in range(len(fields))]
    values = pa.table(
        [transformed(rows, schema.findColumnName(f.sourceId()), f.transform().toString()) for f in fields],
        names=names,
    )
    numbered = values.append_column("row", pa.array(range(len(rows)), pa.int64()))
    grouped = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    keys = [grouped.column(name).to_pylist() for name in names]
    return [
        (tuple(column[index] for column in keys), rows.take(members.values))
        for index, members in enumerate(grouped.column("row_list"))
    ]


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
