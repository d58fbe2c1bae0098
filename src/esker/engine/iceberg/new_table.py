"""A table that is to be created, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.table_id import TableId
from esker.project.layout import PartitionField, SortField
from esker.project.types import Column, literal, quoted


@dataclass(frozen=True)
class NewTable:
    """A table that is to be created."""

    id: TableId
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    properties: Mapping[str, str]
    sort_fields: tuple[SortField, ...] = ()
    identifier: tuple[str, ...] = ()
    """Columns that identify a row."""

    def ddl(self) -> str:
        """Return it as a statement, for people to read."""
        columns = ",\n  ".join(column.ddl() for column in self.columns)
        text = f"CREATE TABLE IF NOT EXISTS {self.id.sql} (\n  {columns}\n) USING iceberg"
        if self.partition_fields:
            text += "\nPARTITIONED BY (" + ", ".join(transform_sql(f) for f in self.partition_fields) + ")"
        properties = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in self.properties.items())
        return f"{text}\nTBLPROPERTIES ({properties})"


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
