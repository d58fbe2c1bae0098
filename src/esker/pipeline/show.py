"""Everything worth knowing about a table, for a person to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from esker.engine.failures import JvmFailure, causes, explained, first_line
from esker.engine.iceberg.scan import ColumnStatistics, Files, planned_files
from esker.engine.iceberg.table import Table, TableId, list_tables
from esker.engine.session import Engine
from esker.errors import InvalidFilter, TableNotFound
from esker.pipeline.metadata import KnownColumn, TableMetadata
from esker.project.reserved import is_own

_SNAPSHOTS = 10


@dataclass(frozen=True)
class SnapshotLine:
    """One line of a table's history."""

    snapshot_id: int
    committed_at: str
    operation: str
    added_records: int
    total_records: int
    """Without rows that are deleted by their position."""
    pipeline: str | None
    changeset: int | None


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


def show_table(engine: Engine, table: TableId, *, where: str | None = None, limit: int = 10) -> TableReport:
    """Return a report on a table, or raise TableNotFound or InvalidFilter."""
    metadata = TableMetadata(engine, table)
    found = metadata.stored
    if found is None:
        raise TableNotFound(str(table), list_tables(engine, table.catalog))
    statistics = metadata.statistics
    assert statistics is not None
    filtered = Filtered(where, planned_files(engine, table, where)) if where else None
    return TableReport(
        metadata=metadata,
        table=found,
        files=statistics.files,
        statistics=statistics.columns,
        snapshots=_snapshots(engine, table),
        filtered=filtered,
        rows=_rows(engine, table, where, limit),
    )


def _snapshots(engine: Engine, table: TableId) -> list[SnapshotLine]:
    with explained(f'cannot read the history of table "{table}"', engine.log):
        rows = (
            engine.spark.table(f"{table.sql}.`snapshots`")
            .orderBy(F.col("committed_at").desc())
            .limit(_SNAPSHOTS)
            .collect()
        )
    lines = []
    for row in rows:
        summary: dict[str, str] = row["summary"]
        changeset = summary.get("esker.changeset")
        lines.append(
            SnapshotLine(
                snapshot_id=row["snapshot_id"],
                committed_at=row["committed_at"].isoformat(),
                operation=row["operation"],
                added_records=int(summary.get("added-records", 0)),
                total_records=int(summary.get("total-records", 0))
                - int(summary.get("total-position-deletes", 0)),
                pipeline=summary.get("esker.pipeline"),
                changeset=int(changeset) if changeset else None,
            )
        )
    return lines


def _rows(engine: Engine, table: TableId, where: str | None, limit: int) -> list[Mapping[str, Any]]:
    frame = engine.spark.table(table.sql)
    try:
        if where:
            frame = frame.where(where)
        return [as_mapping(row) for row in frame.limit(limit).collect()]
    except JvmFailure as error:
        if where:
            raise InvalidFilter(where, first_line(causes(error)[0].message)) from error
        with explained(f'cannot read table "{table}"', engine.log):
            raise


def as_mapping(row: Row) -> Mapping[str, Any]:
    """Return a row as names and values, nested rows included."""
    return row.asDict(recursive=True)
