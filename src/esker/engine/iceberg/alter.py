"""Alter tables: metadata operations that rewrite no file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from esker.engine.failures import explained
from esker.engine.iceberg.columns import schema_json
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.new_table import transform_sql
from esker.engine.iceberg.schema import NAME_MAPPING
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.session import Engine
from esker.project.layout import PartitionField
from esker.project.types import Column, Type, ddl, literal, quoted


def add_columns(engine: Engine, table: TableId, columns: Iterable[tuple[tuple[str, ...], Column]]) -> None:
    """Add columns, each at a path (`()` for the top), in one commit."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot alter table "{table}"', engine.log):
        update = java_table(engine, table).updateSchema().caseSensitive(False)
        for path, column in columns:
            text = json.dumps(schema_json([column]))
            kind = iceberg(jvm, "SchemaParser").fromJson(text).findType(column.name)
            update.addColumn(".".join(path) or None, column.name, kind, column.doc)
        update.commit()


def widen_columns(engine: Engine, table: TableId, columns: Iterable[tuple[tuple[str, ...], Type]]) -> None:
    """Give columns, each by its path, a wider type."""
    for path, kind in columns:
        _alter(engine, table, f"ALTER COLUMN {_name(path)} TYPE {ddl(kind)}")


def rename_columns(engine: Engine, table: TableId, names: Iterable[tuple[str, str]]) -> None:
    """Rename columns, from and to."""
    for old, new in names:
        _alter(engine, table, f"RENAME COLUMN {quoted(old)} TO {quoted(new)}")


def drop_columns(engine: Engine, table: TableId, columns: Iterable[str]) -> None:
    """Drop columns."""
    _alter(engine, table, f"DROP COLUMNS ({', '.join(quoted(name) for name in columns)})")


def relax_columns(engine: Engine, table: TableId, columns: Iterable[tuple[str, ...]]) -> None:
    """Let columns and fields, each by its path, be null, in one commit."""
    with explained(f'cannot alter table "{table}"', engine.log):
        update = java_table(engine, table).updateSchema().caseSensitive(False)
        for path in columns:
            update.makeColumnOptional(".".join(path))
        update.commit()


def repartition(
    engine: Engine, table: TableId, dropped: Iterable[PartitionField], added: Iterable[PartitionField]
) -> None:
    """Change how new files are partitioned."""
    for field in dropped:
        _alter(engine, table, f"DROP PARTITION FIELD {transform_sql(field)}")
    for field in added:
        _alter(engine, table, f"ADD PARTITION FIELD {transform_sql(field)}")


def describe_columns(engine: Engine, table: TableId, docs: Iterable[tuple[tuple[str, ...], str]]) -> None:
    """Give columns and fields, each by its path, other docs, in one commit."""
    with explained(f'cannot alter table "{table}"', engine.log):
        update = java_table(engine, table).updateSchema().caseSensitive(False)
        for path, doc in docs:
            update.updateColumnDoc(".".join(path), doc)
        update.commit()


def reorder_columns(engine: Engine, table: TableId, names: Sequence[str]) -> None:
    """Bring columns into an order, in one commit. Those that are not named come after them, as they are."""
    with explained(f'cannot alter table "{table}"', engine.log):
        update = java_table(engine, table).updateSchema().caseSensitive(False)
        for place, name in enumerate(names):
            if place:
                update.moveAfter(name, names[place - 1])
            else:
                update.moveFirst(name)
        update.commit()


def set_properties(
    engine: Engine, table: TableId, properties: Mapping[str, str], removed: Iterable[str] = ()
) -> None:
    """Set properties of a table and remove others, in one commit."""
    with explained(f'cannot alter table "{table}"', engine.log):
        update = java_table(engine, table).updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        for key in removed:
            update.remove(key)
        update.commit()


def set_format_version(engine: Engine, table: TableId, version: int) -> None:
    """Upgrade a table to another format version."""
    _alter(engine, table, f"SET TBLPROPERTIES ('format-version' = '{version}')")


def map_names(engine: Engine, table: TableId) -> None:
    """Let files without field ids be read by the names of the columns, also after columns are renamed."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot alter table "{table}"', engine.log):
        names = iceberg(jvm, "mapping.MappingUtil").create(java_table(engine, table).schema())
        text = iceberg(jvm, "mapping.NameMappingParser").toJson(names)
    _alter(engine, table, f"SET TBLPROPERTIES ({literal(NAME_MAPPING)} = {literal(text)})")


def _alter(engine: Engine, table: TableId, action: str) -> None:
    with explained(f'cannot alter table "{table}"', engine.log):
        engine.spark.sql(f"ALTER TABLE {table.sql} {action}")


def _name(path: tuple[str, ...]) -> str:
    return ".".join(quoted(part) for part in path)
