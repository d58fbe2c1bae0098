"""Tables as this process sees them, without Java. `Undecided` is raised for what only Spark can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.engine.iceberg.document import Document, Undecided
from esker.engine.iceberg.file_statistics import Files, column_statistics_of, files_of
from esker.engine.iceberg.lookup import can_read, lacks_columns, some_rows
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import Table
from esker.engine.pins import is_spark
from esker.pipeline.tables_seen import SnapshotLine, Statistics, TablesSeen
from esker.project import Project
from esker.project.types import Array, Map, Plain, Struct, Type
from esker.reading.documents import Documents


@dataclass(frozen=True)
class TablesHere(TablesSeen):
    """The tables of a project whose metadata is read as documents."""

    documents: Documents

    @property
    def project(self) -> Project:
        return self.documents.project

    def find(self, table: TableId) -> Table | None:
        return self.documents.table(table)

    def exists(self, table: TableId) -> bool:
        return self.documents.find(table) is not None

    def names(self, catalog: str) -> list[str]:
        raise Undecided("which tables there are")

    def statistics(self, table: Table) -> Statistics:
        document = self._read(table)
        return Statistics(files_of(document), column_statistics_of(document))

    def filtered(self, table: Table, where: str) -> Files:
        raise Undecided("a filter in SQL")

    def snapshots(self, table: Table, limit: int) -> list[SnapshotLine]:
        found = sorted(self._read(table).snapshots, key=lambda each: each.committed_at, reverse=True)
        return [
            # By the clock of this machine, as Spark hands moments to Python.
            SnapshotLine.of(each.id, _local(each.committed_at).isoformat(), each.operation, each.summary)
            for each in found[:limit]
        ]

    def rows(self, table: Table, where: str | None, limit: int) -> list[Mapping[str, Any]]:
        if where:
            raise Undecided("a filter in SQL")
        document = self._read(table)
        files, schema = document.files, document.schema
        if not can_read(files, schema, files.data):
            raise Undecided("files or types that only Java reads")
        if any(lacks_columns(files, schema, file) for file in files.data[:limit]):
            raise Undecided("columns whose values only partitions have")
        return [
            {column.name: _as_spark(row[column.name], column.type) for column in table.columns}
            for row in some_rows(files, schema, limit).to_pylist()
        ]

    def _read(self, table: Table) -> Document:
        """Return a table as it was when it was found, or raise Undecided: it is gone."""
        found = self.documents.find(table.id)
        if found is None or found.table.version != table.version:
            raise Undecided("the table moved on meanwhile")
        return found


def _as_spark(value: Any, kind: Type) -> Any:
    """Return a value of Arrow's as Spark hands it to Python."""
    if value is None:
        return None
    match kind:
        case Struct(fields):
            return {field.name: _as_spark(value[field.name], field.type) for field in fields}
        case Array(element):
            return [_as_spark(each, element) for each in value]
        case Map(key, item):
            return {_as_spark(k, key): _as_spark(v, item) for k, v in value}
        case Plain("timestamp"):
            return _local(value)
        case Plain("binary"):
            # Before Spark 4.1 they could be changed.
            return bytearray(value) if is_spark("3.5") or is_spark("4.0") else value
    return value


def _local(moment: datetime) -> datetime:
    return moment.astimezone().replace(tzinfo=None)
