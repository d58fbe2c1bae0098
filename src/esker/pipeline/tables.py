"""Which tables a pipeline writes to."""

from __future__ import annotations

from esker.engine.iceberg.table import TableId
from esker.project import Pipeline, Project
from esker.project.pipelines import DEAD_LETTERS, SIDE_TABLES

RECORD_TABLES = ("__files", "__positions")
"""How system tables end whose rows count only when a ledger names them."""


def table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that a pipeline loads into."""
    return TableId(project.catalog_name(pipeline.catalog), pipeline.table)


def files_table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that records which files were loaded."""
    return _beside(project, table_of(project, pipeline), "__files")


def log_of(project: Project, table: TableId) -> TableId:
    """Return the change log of a table."""
    return _beside(project, table, "__changes")


def quarantine_of(project: Project, table: TableId) -> TableId:
    """Return the quarantine of a table."""
    return _beside(project, table, "__quarantine")


def quality_of(project: Project, table: TableId) -> TableId:
    """Return the quality history of a table."""
    return _beside(project, table, "__quality")


def deletes_of(project: Project, table: TableId) -> TableId:
    """Return the table that remembers deletes of a table's rows."""
    return _beside(project, table, "__deletes")


def dead_letters_of(project: Project, table: TableId, consumer: str) -> TableId:
    """Return the table of a consumer's dead letters."""
    namespace = project.system_namespace or table.namespace
    return TableId(table.catalog, f"{namespace}.{consumer}{DEAD_LETTERS}")


def tables_beside(project: Project, table: TableId) -> list[TableId]:
    """Return all system tables that may stand beside a table."""
    return [_beside(project, table, ending) for ending in SIDE_TABLES]


def _beside(project: Project, table: TableId, ending: str) -> TableId:
    if project.system_namespace:
        return TableId(table.catalog, f"{project.system_namespace}.{table.name.replace('.', '__')}{ending}")
    return TableId(table.catalog, f"{table.name}{ending}")
