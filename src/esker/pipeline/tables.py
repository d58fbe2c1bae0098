"""Which tables a pipeline writes to."""

from __future__ import annotations

from esker.engine.iceberg.table import TableId
from esker.project import Pipeline, Project


def table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that a pipeline loads into."""
    return TableId(project.catalog_name(pipeline.catalog), pipeline.table)


def files_table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that records which files were loaded."""
    table = table_of(project, pipeline)
    if project.system_namespace:
        return TableId(table.catalog, f"{project.system_namespace}.{table.name.replace('.', '__')}__files")
    return TableId(table.catalog, f"{table.name}__files")
