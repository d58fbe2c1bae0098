"""Everything worth knowing about a table, for a person to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from esker.engine.iceberg.file_statistics import ColumnStatistics, Files
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import Table
from esker.errors import TableNotFound
from esker.pipeline.metadata import KnownColumn, TableMetadata
from esker.pipeline.tables_seen import SnapshotLine, TablesSeen
from esker.project.reserved import is_own

_SNAPSHOTS = 10


@dataclass(frozen=True)
class Filtered:
    """What a filter would read, beside what the whole table holds."""

    where: str
    files: Files


@dataclass(frozen=True)
class TableReport:
    """What is known of a table, its files, history and some of its rows."""

    metadata: TableMetadata
    table: Table
    files: Files
    statistics: list[ColumnStatistics]
    snapshots: list[SnapshotLine]
    filtered: Filtered | None
    rows: list[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        table, known = self.table, self.metadata.as_json()
        return {
            "table": str(table.id),
            "catalog": table.id.catalog,
            "location": table.location,
            "format_version": table.format_version,
            "columns": [c for c in known["columns"] if c["stored"]] + _own_columns(table),
            "key": known["key"],
            "partition_by": list(table.partition_fields),
            "sort_by": [str(field) for field in table.sort_fields],
            "contract": known["contract"],
            "lineage": known["lineage"],
            "files": asdict(self.files),
            "statistics": [asdict(statistics) for statistics in self.statistics],
            "snapshots": [asdict(line) for line in self.snapshots],
            "where": {"filter": self.filtered.where, **asdict(self.filtered.files)}
            if self.filtered
            else None,
            "rows": [dict(row) for row in self.rows],
        }


def _own_columns(table: Table) -> list[dict[str, Any]]:
    return [
        KnownColumn(column, is_stored=True, agreed=None).as_json()
        for column in table.columns
        if is_own(column.name)
    ]


def show_table(
    tables: TablesSeen, table: TableId, *, where: str | None = None, limit: int = 10
) -> TableReport:
    """Return a report on a table, or raise TableNotFound or InvalidFilter."""
    metadata = TableMetadata(tables, table)
    found = metadata.stored
    if found is None:
        raise TableNotFound(str(table), tables.names(table.catalog))
    statistics = metadata.statistics
    assert statistics is not None
    return TableReport(
        metadata=metadata,
        table=found,
        files=statistics.files,
        statistics=statistics.columns,
        snapshots=tables.snapshots(found, _SNAPSHOTS),
        filtered=Filtered(where, tables.filtered(found, where)) if where else None,
        rows=tables.rows(found, where, limit),
    )
