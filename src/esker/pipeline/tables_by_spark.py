"""Tables as Spark sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from esker.engine.failures import JvmFailure, causes, explained, first_line
from esker.engine.iceberg.scan import Files, column_statistics, planned_files
from esker.engine.iceberg.table import Table, TableId, exists, find_table, list_tables
from esker.engine.session import Engine
from esker.errors import InvalidFilter
from esker.pipeline.tables_seen import SnapshotLine, Statistics, TablesSeen
from esker.project import Project


@dataclass(frozen=True)
class TablesBySpark(TablesSeen):
    """The tables of the project that Spark runs for."""

    engine: Engine

    @property
    def project(self) -> Project:
        return self.engine.project

    def find(self, table: TableId) -> Table | None:
        self.engine.open_catalog(table.catalog)
        return find_table(self.engine, table)

    def exists(self, table: TableId) -> bool:
        return exists(self.engine, table)

    def names(self, catalog: str) -> list[str]:
        return list_tables(self.engine, catalog)

    def statistics(self, table: Table) -> Statistics:
        return Statistics(planned_files(self.engine, table.id, None), column_statistics(self.engine, table))

    def filtered(self, table: Table, where: str) -> Files:
        return planned_files(self.engine, table.id, where)

    def snapshots(self, table: Table, limit: int) -> list[SnapshotLine]:
        with explained(f'cannot read the history of table "{table.id}"', self.engine.log):
            rows = (
                self.engine.spark.table(f"{table.id.sql}.`snapshots`")
                .orderBy(F.col("committed_at").desc())
                .limit(limit)
                .collect()
            )
        return [
            SnapshotLine.of(
                row["snapshot_id"], row["committed_at"].isoformat(), row["operation"], row["summary"]
            )
            for row in rows
        ]

    def rows(self, table: Table, where: str | None, limit: int) -> list[Mapping[str, Any]]:
        frame = self.engine.spark.table(table.id.sql)
        try:
            if where:
                frame = frame.where(where)
            return [as_mapping(row) for row in frame.limit(limit).collect()]
        except JvmFailure as error:
            if where:
                raise InvalidFilter(where, first_line(causes(error)[0].message)) from error
            with explained(f'cannot read table "{table.id}"', self.engine.log):
                raise


def as_mapping(row: Row) -> Mapping[str, Any]:
    """Return a row as names and values, nested rows included."""
    return row.asDict(recursive=True)
