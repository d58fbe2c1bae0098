"""Partition values, computed from rows in this process and handed to Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform

from esker.engine.iceberg.java import each, iceberg, java_class

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
        [_transformed(rows, schema.findColumnName(f.sourceId()), f.transform().toString()) for f in fields],
        names=names,
    )
    numbered = values.append_column("row", pa.array(range(len(rows)), pa.int64()))
    grouped = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    keys = [grouped.column(name).to_pylist() for name in names]
    return [
        (tuple(column[index] for column in keys), rows.take(members.values))
        for index, members in enumerate(grouped.column("row_list"))
    ]


def partition_data(spec: Any, jvm: Any, values: Sequence[Any]) -> Any:
    """Return partition values as Iceberg's own object."""
    kind = spec.partitionType()
    data = iceberg(jvm, "PartitionData")(kind)
    for index, value in enumerate(values):
        if value is not None:
            data.put(index, _java_value(jvm, str(kind.fields().get(index).type().typeId()), value))
    return data


def _transformed(rows: pa.Table, column: str, name: str) -> pa.Array:
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
    return source if kind == "identity" else pa.nulls(len(rows), pa.int32())


def _java_value(jvm: Any, kind: str, value: Any) -> Any:
    match kind:
        case "INTEGER":
            return int(value)
        case "LONG" | "TIME":
            return java_class(jvm, "java.lang.Long").valueOf(int(value))
        case "DATE":
            return value if isinstance(value, int) else (value - date(1970, 1, 1)).days
        case "TIMESTAMP":
            return java_class(jvm, "java.lang.Long").valueOf(
                value if isinstance(value, int) else _microseconds(value)
            )
        case "FLOAT":
            return java_class(jvm, "java.lang.Float").valueOf(value)
        case "DECIMAL":
            return java_class(jvm, "java.math.BigDecimal")(str(value))
        case "BINARY" | "FIXED":
            return java_class(jvm, "java.nio.ByteBuffer").wrap(bytearray(value))
        case "UUID":
            return java_class(jvm, "java.util.UUID").fromString(str(value))
    return value


def _microseconds(moment: datetime) -> int:
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
