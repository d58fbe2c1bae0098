"""Create tables: columns, key, partitioning, sort order and properties in one commit."""

from __future__ import annotations

import json
from typing import Any

from esker.engine.failures import JvmFailure, causes, explained
from esker.engine.iceberg.columns import schema_json
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.new_table import NewTable
from esker.engine.iceberg.table import java_identifier, order_rows
from esker.engine.session import Engine
from esker.engine.sql import identifier
from esker.project.layout import PartitionField

__all__ = ["NewTable", "create"]


def create(engine: Engine, table: NewTable) -> None:
    """Create a table and its namespace; does nothing where they are."""
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot create table "{table.id}"', engine.log):
        namespace = identifier(table.id.catalog, table.id.namespace)
        engine.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        text = json.dumps(schema_json(table.columns, table.identifier))
        schema = iceberg(jvm, "SchemaParser").fromJson(text)
        order = iceberg(jvm, "SortOrder").builderFor(schema)
        order_rows(jvm, order, table.sort_fields)
        builder = engine.iceberg_catalog(table.id.catalog).buildTable(
            java_identifier(engine, table.id), schema
        )
        builder.withPartitionSpec(_spec(jvm, schema, table.partition_fields)).withSortOrder(order.build())
        for key, value in table.properties.items():
            builder.withProperty(key, value)
        try:
            builder.create()
        except JvmFailure as error:
            if causes(error)[0].kind != "AlreadyExistsException":
                raise


def _spec(jvm: Any, schema: Any, fields: tuple[PartitionField, ...]) -> Any:
    """Return a partitioning. Names of fields are those that Spark's CREATE TABLE would choose."""
    spec = iceberg(jvm, "PartitionSpec").builderFor(schema).caseSensitive(False)
    for field in fields:
        if field.argument is not None:
            getattr(spec, field.transform)(field.column, field.argument)
        else:
            getattr(spec, field.transform)(field.column)
    return spec.build()
