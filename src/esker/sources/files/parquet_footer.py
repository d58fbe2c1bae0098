"""The footer of a Parquet file: what Spark would cut, or refuse without the names of file and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from esker.errors import ColumnRefused, SourceUnreadable
from esker.sources.files.listing import FoundFile

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True)
class Footer:
    """A file, and the text of its schema: files with equal texts have the same columns."""

    file: FoundFile
    schema: str
    rows: int
    bytes: int
    """Of all columns, unpacked."""


def read_footer(file: FoundFile) -> Footer:
    """Return a file's footer. Raises SourceUnreadable, and ColumnRefused for what Spark cannot keep."""
    try:
        with pq.ParquetFile(str(file.location)) as parquet:
            _check_names(file, parquet.schema_arrow)
            for path, kind in _leaves(parquet.schema_arrow):
                _check_type(file, path, kind, parquet)
            _check_int96(file, parquet)
            about = parquet.metadata
            spark_schema = (about.metadata or {}).get(_SPARK_SCHEMA)
            return Footer(
                file,
                str(parquet.schema).partition("\n")[2] + str(spark_schema),
                rows=about.num_rows,
                bytes=sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)),
            )
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(file.path, str(error)) from error


def _check_names(file: FoundFile, fields: Iterable[pa.Field], prefix: str = "") -> None:
    seen: set[str] = set()
    for field in fields:
        name = f"{prefix}{field.name}"
        if name.lower() in seen:
            raise ColumnRefused(
                file.path, name, "It stands there twice; upper and lower case are one.", "Rename one of them."
            )
        seen.add(name.lower())
        if pa.types.is_struct(field.type):
            _check_names(file, field.type, f"{name}.")


def _leaves(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Return the columns that hold values, however deep."""
    for field in fields:
        name, kind = f"{prefix}{field.name}", field.type
        if pa.types.is_struct(kind):
            yield from _leaves(kind, f"{name}.")
        elif pa.types.is_map(kind):
            yield from _leaves([kind.key_field, kind.item_field], f"{name}.")
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            yield from _leaves([kind.value_field], f"{name}.")
        else:
            yield name, kind


def _check_type(file: FoundFile, name: str, kind: pa.DataType, parquet: pq.ParquetFile) -> None:
    if pa.types.is_time(kind):
        raise ColumnRefused(
            file.path,
            name,
            "It holds times of day, for which Iceberg's tables in Spark have no type.",
            "Write it as text, or as a timestamp.",
        )
    if pa.types.is_decimal(kind) and kind.precision > 38:
        raise ColumnRefused(
            file.path, name, f"It has {kind.precision} digits; there is room for 38.", "Write it as text."
        )
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
            raise ColumnRefused(
                file.path,
                column.path if column.path else name,
                "It holds times with nanoseconds; there is room for microseconds.",
                'Write it with microseconds (in pandas: df.to_parquet(…, coerce_timestamps="us")).',
            )


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
