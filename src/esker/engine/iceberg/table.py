"""Iceberg tables as values: which there are, what they look like, how they are made and altered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from esker.engine.failures import JvmFailure, causes, explained
from esker.engine.iceberg.java import each, iceberg, text_map
from esker.engine.session import Engine
from esker.engine.sql import identifier, literal
from esker.errors import TableNotFound
from esker.project.layout import PartitionField, SortField
from esker.project.types import Column, columns_from_json, quoted

SnapshotId = int

TABLE_DEFAULTS = {
    "format-version": "2",
    # Old metadata files are removed, but enough are kept to tell a rollback from an expiry.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Properties of every table that Esker creates, unless the pipeline says otherwise."""


@dataclass(frozen=True)
class TableId:
    """A table in a catalog."""

    catalog: str
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def sql(self) -> str:
        """The quoted identifier, with the catalog."""
        return identifier(self.catalog, self.name)

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Snapshot:
    """One state of a table."""

    id: SnapshotId
    parent: SnapshotId | None
    sequence: int
    committed_at: datetime
    operation: str
    summary: Mapping[str, str]
    manifest_list: str


@dataclass(frozen=True)
class Table:
    """A table as it was when it was looked at."""

    id: TableId
    uuid: str
    location: str
    format_version: int
    schema_id: int
    columns: tuple[Column, ...]
    partition_fields: tuple[str, ...]
    sort_fields: tuple[SortField, ...]
    properties: Mapping[str, str]
    snapshot: Snapshot | None


@dataclass(frozen=True)
class NewTable:
    """A table that is to be created."""

    id: TableId
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    properties: Mapping[str, str]
    sort_fields: tuple[SortField, ...] = ()

    def ddl(self) -> str:
        """Return the statement that creates it; running it twice is harmless."""
        columns = ",\n  ".join(column.ddl() for column in self.columns)
        text = f"CREATE TABLE IF NOT EXISTS {self.id.sql} (\n  {columns}\n) USING iceberg"
        if self.partition_fields:
            text += "\nPARTITIONED BY (" + ", ".join(transform_sql(f) for f in self.partition_fields) + ")"
        properties = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in self.properties.items())
        return f"{text}\nTBLPROPERTIES ({properties})"


def java_table(engine: Engine, table: TableId) -> Any:
    """Return Iceberg's own object for a table, as the table is now. It never leaves the engine."""
    kept = engine.handles.get(table.sql)
    if kept is not None:
        try:
            kept.refresh()
        except JvmFailure:
            pass  # dropped, or made anew under its name
        else:
            return kept
    return _loaded(engine, table)


def java_transaction(engine: Engine, table: TableId) -> tuple[Any, Any]:
    """Return Iceberg's own object for a table, and a transaction on the table as it is now."""
    kept = engine.handles.get(table.sql)
    if kept is not None:
        try:
            return kept, kept.newTransaction()  # looks for the newest metadata by itself
        except JvmFailure:
            pass
    loaded = _loaded(engine, table)
    return loaded, loaded.newTransaction()


def _loaded(engine: Engine, table: TableId) -> Any:
    engine.handles.forget(table.sql)
    loaded = engine.iceberg_catalog(table.catalog).loadTable(_identifier(engine, table))
    engine.handles.keep(table.sql, loaded)
    return loaded


def exists(engine: Engine, table: TableId) -> bool:
    """Tell whether the catalog has a table."""
    with explained(f'cannot look for table "{table}"', engine.log):
        return bool(engine.iceberg_catalog(table.catalog).tableExists(_identifier(engine, table)))


def load(engine: Engine, table: TableId) -> Table:
    """Return a table as it is now, or raise TableNotFound."""
    found = find_table(engine, table)
    if found is None:
        raise TableNotFound(str(table), list_tables(engine, table.catalog))
    return found


def find_table(engine: Engine, table: TableId) -> Table | None:
    """Return a table as it is now; None when the catalog has none of that name."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot load table "{table}"', engine.log):
        try:
            found = java_table(engine, table)
        except JvmFailure as error:
            if causes(error)[0].kind == "NoSuchTableException":
                return None
            raise
        metadata = found.operations().current()
        return Table(
            id=table,
            uuid=str(found.uuid()),
            location=found.location(),
            format_version=metadata.formatVersion(),
            schema_id=found.schema().schemaId(),
            columns=columns_of(jvm, found),
            partition_fields=_partition_fields(found),
            sort_fields=sort_fields(jvm, found.sortOrder(), found.schema()),
            properties=text_map(jvm, found.properties()),
            snapshot=snapshot_value(jvm, found.currentSnapshot()),
        )


def columns_of(jvm: Any, table: Any) -> tuple[Column, ...]:
    """Return the columns of one of Iceberg's table objects."""
    schema = iceberg(jvm, "spark.SparkSchemaUtil").convert(table.schema())
    return columns_from_json(json.loads(schema.json()))


def list_tables(engine: Engine, catalog: str) -> list[str]:
    """Return the names of all tables in a catalog."""
    with explained(f'cannot list catalog "{catalog}"', engine.log):
        names = []
        for row in engine.spark.sql(f"SHOW NAMESPACES IN {identifier(catalog)}").collect():
            space = row[0]
            for found in engine.spark.sql(f"SHOW TABLES IN {identifier(catalog, space)}").collect():
                names.append(f"{space}.{found['tableName']}")
        return sorted(names)


def create(engine: Engine, table: NewTable) -> None:
    """Create a table and its namespace; does nothing where they are."""
    with explained(f'cannot create table "{table.id}"', engine.log):
        namespace = identifier(table.id.catalog, table.id.namespace)
        engine.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        engine.spark.sql(table.ddl())
        if table.sort_fields and java_table(engine, table.id).sortOrder().isUnsorted():
            sort_by(engine, table.id, table.sort_fields)


def sort_by(engine: Engine, table: TableId, fields: Sequence[SortField]) -> None:
    """Change how rows are sorted within new files.

    Spark's `WRITE ORDERED BY` would also set how other writers distribute their rows.
    """
    with explained(f'cannot alter table "{table}"', engine.log):
        jvm: Any = engine.spark.sparkContext._jvm
        order = java_table(engine, table).replaceSortOrder()
        nulls = iceberg(jvm, "NullOrder")
        for field in fields:
            column = iceberg(jvm, "expressions.Expressions").ref(field.column)
            if field.is_descending:
                order.desc(column, nulls.NULLS_LAST)
            else:
                order.asc(column, nulls.NULLS_FIRST)
        order.commit()


def sort_fields(jvm: Any, order: Any, schema: Any) -> tuple[SortField, ...]:
    """Return one of Iceberg's sort orders, up to the first field that is more than a column."""
    if order.isUnsorted():
        return ()
    found = []
    for field in json.loads(iceberg(jvm, "SortOrderParser").toJson(order))["fields"]:
        if field["transform"] != "identity":
            break
        found.append(SortField(schema.findColumnName(field["source-id"]), field["direction"] == "desc"))
    return tuple(found)


def snapshot_value(jvm: Any, snapshot: Any) -> Snapshot | None:
    """Return Iceberg's snapshot object as a value."""
    if snapshot is None:
        return None
    return Snapshot(
        id=snapshot.snapshotId(),
        parent=snapshot.parentId(),
        sequence=snapshot.sequenceNumber(),
        committed_at=datetime.fromtimestamp(snapshot.timestampMillis() / 1000, UTC),
        operation=snapshot.operation(),
        summary=text_map(jvm, snapshot.summary()),
        manifest_list=snapshot.manifestListLocation(),
    )


def find_snapshot(engine: Engine, table: TableId, snapshot: SnapshotId) -> Snapshot | None:
    """Return one of a table's snapshots; None when it has been expired."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot load table "{table}"', engine.log):
        return snapshot_value(jvm, java_table(engine, table).snapshot(snapshot))


def _identifier(engine: Engine, table: TableId) -> Any:
    jvm: Any = engine.spark.sparkContext._jvm
    return iceberg(jvm, "catalog.TableIdentifier").parse(table.name)


def transform_sql(field: PartitionField) -> str:
    """Return a partition field as it stands in SQL."""
    column = ".".join(quoted(part) for part in field.column.split("."))
    match field.transform:
        case "identity":
            return column
        case "bucket" | "truncate":
            return f"{field.transform}({field.argument}, {column})"
        case _:
            return f"{field.transform}s({column})"


def _partition_fields(table: Any) -> tuple[str, ...]:
    spec = table.spec()
    return () if spec.isUnpartitioned() else tuple(_described(field, table) for field in each(spec.fields()))


def _described(field: Any, table: Any) -> str:
    column = table.schema().findColumnName(field.sourceId())
    name = field.transform().toString()
    if name == "identity":
        return str(column)
    if "[" in name:
        kind, _, number = name.rstrip("]").partition("[")
        return f"{kind}({number}, {column})"
    return f"{name}({column})"
