"""Iceberg tables as values: which there are, and what they look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from esker.engine.failures import JvmFailure, causes, explained
from esker.engine.iceberg.credentials import expires
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.metadata import Snapshot, SnapshotId, metadata_of, read_snapshot, snapshot_at
from esker.engine.iceberg.metadata_file import unless_damaged
from esker.engine.iceberg.table_id import TABLE_DEFAULTS, TableId, named_table
from esker.engine.iceberg.table_metadata import Table
from esker.engine.iceberg.table_state import opener
from esker.engine.session import Engine
from esker.engine.sql import identifier
from esker.errors import TableNotFound
from esker.project.layout import SortField

__all__ = [
    "TABLE_DEFAULTS",
    "Table",
    "TableId",
    "exists",
    "find_snapshot",
    "find_snapshot_at",
    "find_table",
    "identify_by",
    "java_identifier",
    "java_table",
    "list_tables",
    "load",
    "named_table",
    "open_state",
    "order_rows",
    "sort_by",
]


def java_table(engine: Engine, table: TableId) -> Any:
    """Return Iceberg's own object for a table, as the table is now. It never leaves the engine."""
    kept = engine.handles.get(table.sql)
    if kept is not None:
        try:
            kept.refresh()
        except JvmFailure:
            pass  # dropped, or dropped and created again
        else:
            return kept
    return _loaded(engine, table)


def open_state(engine: Engine, table: TableId) -> tuple[Any, Any]:
    """Return Iceberg's own object for a table, and Esker's for the table as it is now."""
    jvm: Any = engine.spark.sparkContext._jvm
    kept = engine.handles.get(table.sql)
    if kept is not None:
        try:
            return kept, opener(jvm).open(kept)  # looks for the newest metadata by itself
        except JvmFailure:
            pass  # dropped, or dropped and created again
    loaded = _loaded(engine, table)
    return loaded, opener(jvm).open(loaded)


def _loaded(engine: Engine, table: TableId) -> Any:
    engine.handles.forget(table.sql)
    catalog, name = engine.iceberg_catalog(table.catalog), java_identifier(engine, table)
    loaded = unless_damaged(engine, table.catalog, table.name, lambda: catalog.loadTable(name))
    engine.handles.keep(table.sql, loaded, expires(engine.spark.sparkContext._jvm, loaded))
    return loaded


def exists(engine: Engine, table: TableId) -> bool:
    """Tell whether the catalog has a table."""
    with explained(f'cannot look for table "{table}"', engine.log):
        return bool(engine.iceberg_catalog(table.catalog).tableExists(java_identifier(engine, table)))


def load(engine: Engine, table: TableId) -> Table:
    """Return a table as it is now, or raise TableNotFound."""
    found = find_table(engine, table)
    if found is None:
        raise TableNotFound(str(table), list_tables(engine, table.catalog))
    return found


def find_table(engine: Engine, table: TableId) -> Table | None:
    """Return a table as it is now; None when the catalog has none of that name."""
    with explained(f'cannot load table "{table}"', engine.log):
        try:
            _, state = open_state(engine, table)
        except JvmFailure as error:
            if causes(error)[0].kind == "NoSuchTableException":
                return None
            raise
        metadata = metadata_of(state.describe())
    return Table(**{field.name: getattr(metadata, field.name) for field in fields(metadata)}, id=table)


def list_tables(engine: Engine, catalog: str) -> list[str]:
    """Return the names of all tables in a catalog."""
    with explained(f'cannot list catalog "{catalog}"', engine.log):
        names = []
        for row in engine.spark.sql(f"SHOW NAMESPACES IN {identifier(catalog)}").collect():
            space = row[0]
            for found in engine.spark.sql(f"SHOW TABLES IN {identifier(catalog, space)}").collect():
                names.append(f"{space}.{found['tableName']}")
        return sorted(names)


def identify_by(
    engine: Engine,
    table: TableId,
    columns: Sequence[str],
    properties: Mapping[str, str] | None = None,
    removed: Iterable[str] = (),
) -> None:
    """Say which columns identify a row, if any, and set or remove properties with it, in one commit.

    The columns must be required, and named as the table does.
    """
    with explained(f'cannot alter table "{table}"', engine.log):
        jvm: Any = engine.spark.sparkContext._jvm
        names = jvm.java.util.ArrayList()
        for name in columns:
            names.add(name)
        transaction = java_table(engine, table).newTransaction()
        transaction.updateSchema().setIdentifierFields(names).commit()
        update = transaction.updateProperties()
        for key, value in (properties or {}).items():
            update.set(key, value)
        for key in removed:
            update.remove(key)
        update.commit()
        transaction.commitTransaction()


def sort_by(engine: Engine, table: TableId, fields: Sequence[SortField]) -> None:
    """Change how rows are sorted within new files.

    Spark's `WRITE ORDERED BY` would also set how other writers distribute their rows.
    """
    with explained(f'cannot alter table "{table}"', engine.log):
        jvm: Any = engine.spark.sparkContext._jvm
        order = java_table(engine, table).replaceSortOrder()
        order_rows(jvm, order, fields)
        order.commit()


def order_rows(jvm: Any, order: Any, fields: Sequence[SortField]) -> None:
    """Tell one of Iceberg's builders of sort orders about columns."""
    nulls = iceberg(jvm, "NullOrder")
    order.caseSensitive(False)
    for field in fields:
        column = iceberg(jvm, "expressions.Expressions").ref(field.column)
        if field.is_descending:
            order.desc(column, nulls.NULLS_LAST)
        else:
            order.asc(column, nulls.NULLS_FIRST)


def find_snapshot(engine: Engine, table: TableId, snapshot: SnapshotId) -> Snapshot | None:
    """Return one of a table's snapshots; None when it has been expired."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot load table "{table}"', engine.log):
        return read_snapshot(jvm, java_table(engine, table).snapshot(snapshot))


def find_snapshot_at(engine: Engine, table: TableId, moment: datetime) -> SnapshotId | None:
    """Return the snapshot that was current at a moment; None when the table had none, or it is expired."""
    with explained(f'cannot load table "{table}"', engine.log):
        found = snapshot_at(java_table(engine, table).operations().current(), moment)
        return found.snapshotId() if found is not None else None


def java_identifier(engine: Engine, table: TableId) -> Any:
    """Return the name of a table as Iceberg's catalogs take it."""
    jvm: Any = engine.spark.sparkContext._jvm
    return iceberg(jvm, "catalog.TableIdentifier").parse(table.name)
