"""The columns that a keyed mode needs in its table, and what a key may be."""

from __future__ import annotations

from esker.contracts.evolution import find
from esker.errors import UnsuitableKey
from esker.project.pipelines import Pipeline
from esker.project.reserved import HASH_COLUMN
from esker.project.types import Column, Decimal, Plain, Type, stored_types

_KEYS = ("string", "int", "bigint", "date", "timestamp", "timestamp_ntz", "boolean")
_ORDERED = (*_KEYS, "float", "double")


def keyed_columns(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return a table's columns with those that a keyed mode adds: the row hash and the mark of deletes."""
    keys = {name.lower() for name in pipeline.key}
    whole = tuple(
        Column(column.name, column.type, column.required or column.name.lower() in keys, column.doc)
        for column in columns
    )
    if pipeline.keeps_deleted and find(columns, pipeline.deleted_column) is None:
        whole += (Column(pipeline.deleted_column, Plain("boolean"), doc="The row was deleted in the source"),)
    whole += tuple(c for c in version_columns(pipeline, columns) if find(columns, c.name) is None)
    if find(columns, HASH_COLUMN) is None:
        whole += (Column(HASH_COLUMN, Plain("bigint"), doc="Tells whether the row's content changed"),)
    return whole


def version_columns(pipeline: Pipeline, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns in which mode `scd2` keeps when a version was valid: moments as in `order_by`."""
    if pipeline.mode != "scd2":
        return ()
    order = find(columns, pipeline.order_by) if pipeline.order_by is not None else None
    kind = order.type if order is not None else Plain("timestamp")
    valid_from, valid_to, is_current = pipeline.versions.names
    return (
        Column(valid_from, kind, doc="When this version began"),
        Column(valid_to, kind, doc="When the next one began, or the row was deleted"),
        Column(is_current, Plain("boolean"), doc="This version is valid now"),
    )


def identifying_key(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the key columns if each value of them has one row, in the modes that see to it."""
    is_unique = pipeline.is_keyed and pipeline.mode not in ("delete_insert", "scd2")
    return tuple(pipeline.key) if is_unique else ()


def check_key(pipeline: Pipeline, columns: tuple[Column, ...]) -> None:
    """Raise UnsuitableKey unless key, order and mark of deletes are columns that can serve as such."""
    for name in pipeline.key:
        _check(pipeline, columns, "key", name, _KEYS)
    if pipeline.order_by is not None:
        _check(pipeline, columns, "order_by", pipeline.order_by, _ORDERED)
    if pipeline.keeps_deleted:
        _check(pipeline, columns, "deleted_column", pipeline.deleted_column, ("boolean",))


def _check(
    pipeline: Pipeline, columns: tuple[Column, ...], role: str, name: str, allowed: tuple[str, ...]
) -> None:
    column = find(columns, name)
    if column is None:
        raise UnsuitableKey(pipeline.table, role, name, "there is no such column", _named(columns))
    if not _is(column.type, allowed):
        fitting = tuple(c for c in columns if _is(c.type, allowed))
        raise UnsuitableKey(pipeline.table, role, name, f"its type is {column.type}", _named(fitting))


def _is(kind: Type, allowed: tuple[str, ...]) -> bool:
    if stored_types(kind):
        return False  # Iceberg orders them in another way than Spark
    return kind.name in allowed if isinstance(kind, Plain) else isinstance(kind, Decimal) and len(allowed) > 1


def _named(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]
