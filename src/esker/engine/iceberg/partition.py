"""Rows by partition, computed in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from esker.engine.iceberg.metadata import Spec
from esker.engine.iceberg.partition_transform import transformed


def split(rows: pa.Table, spec: Spec) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """Return the rows of each partition, with the partition's values. Rows keep their order."""
    if not spec.places or not len(rows):
        return [((), rows)] if len(rows) else []
    names = [f"p{index}" for index in range(len(spec.places))]
    values = pa.table(
        [transformed(rows, place.column, place.transform) for place in spec.places], names=names
    )
    numbered = values.append_column("row", pa.array(range(len(rows)), pa.int64()))
    grouped = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    keys = [grouped.column(name).to_pylist() for name in names]
    return [
        (tuple(column[index] for column in keys), rows.take(members.values))
        for index, members in enumerate(grouped.column("row_list"))
    ]
