"""Questions about a project's tables. Spark and this process both implement them and answer with values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esker.engine.iceberg.file_statistics import ColumnStatistics, Files
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import Table
from esker.project import Project


@dataclass(frozen=True)
class Statistics:
    """What a table's files say of its rows. Those that are deleted stay in the files until these are
    rewritten: `files.rows` leaves them out, figures of columns do not."""

    files: Files
    columns: list[ColumnStatistics]


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

    @classmethod
    def of(
        cls, snapshot_id: int, committed_at: str, operation: str, summary: Mapping[str, str]
    ) -> SnapshotLine:
        """Return a snapshot as its summary describes it."""
        changeset = summary.get("esker.changeset")
        return cls(
            snapshot_id=snapshot_id,
            committed_at=committed_at,
            operation=operation,
            added_records=int(summary.get("added-records", 0)),
            total_records=int(summary.get("total-records", 0))
            - int(summary.get("total-position-deletes", 0)),
            pipeline=summary.get("esker.pipeline"),
            changeset=int(changeset) if changeset else None,
        )


class TablesSeen(ABC):
    """The tables of a project, to look at."""

    @property
    @abstractmethod
    def project(self) -> Project:
        """The project that they belong to."""

    @abstractmethod
    def find(self, table: TableId) -> Table | None:
        """Return a table as it is now; None when the catalog has none of that name."""

    @abstractmethod
    def exists(self, table: TableId) -> bool:
        """Tell whether the catalog has a table."""

    @abstractmethod
    def names(self, catalog: str) -> list[str]:
        """Return the names of all tables in a catalog."""

    @abstractmethod
    def statistics(self, table: Table) -> Statistics:
        """Return rows, files, bytes, and per column nulls and bounds; no row is read."""

    @abstractmethod
    def filtered(self, table: Table, where: str) -> Files:
        """Return what a scan with a filter would read, or raise InvalidFilter."""

    @abstractmethod
    def snapshots(self, table: Table, limit: int) -> list[SnapshotLine]:
        """Return the newest snapshots of a table, newest first."""

    @abstractmethod
    def rows(self, table: Table, where: str | None, limit: int) -> list[Mapping[str, Any]]:
        """Return some rows, as names and values, nested ones included. Raises InvalidFilter."""
