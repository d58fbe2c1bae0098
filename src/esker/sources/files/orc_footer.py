"""The footer of an ORC file: what Spark would cut, or refuse without the names of file and column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from esker.errors import ColumnRefused, SourceUnreadable
from esker.sources.files.arrow_schema import check_names, leaves
from esker.sources.files.found import FoundFile
from esker.sources.files.typed import Head, no_nanoseconds

_UNPACKED = 4
"""How much stripes grow when they are unpacked, about: the footer does not say."""
_SPARK = b"org.apache.spark.version"


def read_footer(file: FoundFile) -> Head:
    """Return what an ORC file is. Raises SourceUnreadable, and ColumnRefused for what Spark cannot keep."""
    try:
        found = orc.ORCFile(str(file.location))
        check_names(file, found.schema)
        # Spark writes microseconds. Others may have more, and the type does not say: the values do.
        is_of_spark = _SPARK in (found.metadata or {})
        for column in found.schema:
            times = [(path, kind) for path, kind in leaves([column]) if pa.types.is_timestamp(kind)]
            for path, kind in times:
                if kind.tz is not None:
                    raise ColumnRefused(
                        file.path,
                        path,
                        "It is a timestamp with local time zone, which Spark cannot read from ORC.",
                        "Write it as a timestamp in UTC, or the file as Parquet.",
                    )
            if times and not is_of_spark and _has_nanoseconds(found, column.name):
                raise no_nanoseconds(file, column.name)
        return Head(str(found.schema), found.nrows, found.content_length * _UNPACKED)
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(file.path, str(error)) from error


def _has_nanoseconds(found: orc.ORCFile, column: str) -> bool:
    stripes = (found.read_stripe(stripe, columns=[column]) for stripe in range(found.nstripes))
    return any(_is_finer(values) for stripe in stripes for values in stripe.columns)


def _is_finer(values: pa.Array) -> bool:
    """Tell whether a time, however deep inside lists and structs, has more than microseconds."""
    kind = values.type
    if pa.types.is_struct(kind):
        return any(_is_finer(pc.struct_field(values, index)) for index in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_finer(values.keys) or _is_finer(values.items)
    if pa.types.is_list(kind):
        return _is_finer(pc.list_flatten(values))
    if not pa.types.is_timestamp(kind):
        return False
    cut = pc.cast(pc.cast(values, pa.timestamp("us"), safe=False), kind)
    return bool(pc.any(pc.not_equal(cut, values)).as_py())
