"""The footer of a Parquet file: what Spark would cut, or refuse without the names of file and column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from esker.errors import ColumnRefused, SourceUnreadable
from esker.sources.files.arrow_schema import check_names, leaves
from esker.sources.files.found import FoundFile
from esker.sources.files.typed import Head, no_nanoseconds, no_room_for_digits, no_time_of_day

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def read_footer(file: FoundFile) -> Head:
    """Return a file's footer. Raises SourceUnreadable, and ColumnRefused for what Spark cannot keep."""
    try:
        with pq.ParquetFile(str(file.location)) as parquet:
            check_names(file, parquet.schema_arrow)
            for path, kind in leaves(parquet.schema_arrow):
                _check_type(file, path, kind, parquet)
            _check_int96(file, parquet)
            about = parquet.metadata
            spark_schema = (about.metadata or {}).get(_SPARK_SCHEMA)
            return Head(
                str(parquet.schema).partition("\n")[2] + str(spark_schema),
                rows=about.num_rows,
                bytes=sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)),
            )
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(file.path, str(error)) from error


def _check_type(file: FoundFile, name: str, kind: pa.DataType, parquet: pq.ParquetFile) -> None:
    if pa.types.is_time(kind):
        raise no_time_of_day(file, name)
    if pa.types.is_decimal(kind) and kind.precision > 38:
        raise no_room_for_digits(file, name, kind.precision)
    if pa.types.is_float16(kind):
        raise ColumnRefused(
            file.path, name, "It holds floats of 16 bits, which Spark cannot read.", "Write it as float."
        )


def _check_int96(file: FoundFile, parquet: pq.ParquetFile) -> None:
    """Refuse times with nanoseconds: Spark keeps microseconds."""
    for index, name in enumerate(parquet.schema.names):
        column = parquet.schema.column(index)
        is_nanos = "nanoseconds" in str(column.logical_type)
        # Spark and others write microseconds as INT96, so here the values decide.
        if is_nanos or (column.physical_type == "INT96" and _has_nanoseconds(parquet, column.path)):
            how = ' (in pandas: df.to_parquet(…, coerce_timestamps="us"))'
            raise no_nanoseconds(file, column.path or name, how)


def _has_nanoseconds(parquet: pq.ParquetFile, path: str) -> bool:
    if (parquet.metadata.metadata or {}).get(_SPARK_SCHEMA):
        return False
    for group in range(parquet.num_row_groups):
        for column in parquet.read_row_group(group, columns=[path]).columns:
            if any(_is_finer(chunk) for chunk in column.chunks):
                return True
    return False


def _is_finer(values: pa.Array) -> bool:
    while not pa.types.is_timestamp(values.type):
        values = values.field(0) if pa.types.is_struct(values.type) else pc.list_flatten(values)
    cut = pc.cast(pc.cast(values, pa.timestamp("us"), safe=False), values.type)
    return bool(pc.any(pc.not_equal(cut, values)).as_py())
