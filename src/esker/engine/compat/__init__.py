"""Spark as Esker uses it, whichever of the supported versions is there.

What the versions do differently stands here and nowhere else: Spark 3.5, which Glue and EMR run, has a file,
and Spark 4 has one with the same functions.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

# By what is there, so that a PySpark that is not supported can be told, and does not fail here.
if TYPE_CHECKING or find_spec("pyspark.sql.classic") is not None:
    from esker.engine.compat.spark4 import (
        CALL,
        column_of,
        frame_of,
        from_arrow,
        is_rounded_json,
        is_strict_json,
        is_valid_utf8,
        make_valid_utf8,
        metadata_column,
        procedure_of,
        rebalanced,
        resolve_jars,
        rows_at_hand,
        silence_queries,
        snapshot_frame,
        static_call,
        to_arrow,
        try_cast,
        try_url_decode,
        value_of_argument,
    )
else:
    from esker.engine.compat.spark35 import (
        CALL,
        column_of,
        frame_of,
        from_arrow,
        is_rounded_json,
        is_strict_json,
        is_valid_utf8,
        make_valid_utf8,
        metadata_column,
        procedure_of,
        rebalanced,
        resolve_jars,
        rows_at_hand,
        silence_queries,
        snapshot_frame,
        static_call,
        to_arrow,
        try_cast,
        try_url_decode,
        value_of_argument,
    )

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def let_go(checkpointed: DataFrame) -> None:
    """Give up what `localCheckpoint` keeps: Spark itself does so only when Java happens to tidy up."""
    frame: Any = checkpointed
    with suppress(Py4JError):  # a Java that ended keeps nothing
        frame._jdf.queryExecution().logical().rdd().unpersist(False)


def arrow_schema_as_spark(schema: pa.Schema) -> dict[str, Any]:
    """Return an Arrow schema as the JSON value of Spark's (its private module, the same since 3.3)."""
    value: dict[str, Any] = from_arrow_schema(schema).jsonValue()
    return value


def arrow_schema(schema: dict[str, Any]) -> pa.Schema:
    """Return Spark's schema, given as its JSON value, as an Arrow schema (from the same module)."""
    return to_arrow_schema(StructType.fromJson(schema))


__all__ = [
    "CALL",
    "arrow_schema",
    "arrow_schema_as_spark",
    "column_of",
    "frame_of",
    "from_arrow",
    "is_rounded_json",
    "is_strict_json",
    "is_valid_utf8",
    "let_go",
    "make_valid_utf8",
    "metadata_column",
    "procedure_of",
    "rebalanced",
    "resolve_jars",
    "rows_at_hand",
    "silence_queries",
    "snapshot_frame",
    "static_call",
    "to_arrow",
    "try_cast",
    "try_url_decode",
    "value_of_argument",
]
