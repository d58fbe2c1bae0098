"""Deletes by value, as Flink writes them: a file of values, told to Iceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.session import Engine


def delete_by_value(engine: Engine, table: TableId, *rows: dict[str, Any]) -> None:
    """Delete all rows of an unpartitioned table on a local disk that have these values."""
    context: Any = engine.spark.sparkContext
    found = java_table(engine, table)
    names = list(rows[0])
    ids = context._gateway.new_array(context._jvm.int, len(names))
    for index, name in enumerate(names):
        ids[index] = found.schema().findField(name).fieldId()
    plain = pa.Table.from_pylist(list(rows))
    fields = [
        field.with_metadata({"PARQUET:field_id": str(ids[index])}) for index, field in enumerate(plain.schema)
    ]
    place = f"{found.location().removeprefix('file:')}/data/{uuid4()}-by-value.parquet"
    pq.write_table(plain.cast(pa.schema(fields)), place)
    file = (
        iceberg(context._jvm, "FileMetadata")
        .deleteFileBuilder(found.spec())
        .ofEqualityDeletes(ids)
        .withPath(place)
        .withFileSizeInBytes(Path(place).stat().st_size)
        .withFormat("parquet")
        .withRecordCount(len(rows))
        .build()
    )
    found.newRowDelta().addDeletes(file).commit()
