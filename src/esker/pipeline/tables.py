"""Which tables a project's pipelines and consumers write to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from esker.engine.iceberg.table_id import TableId
from esker.project import Pipeline, Project
from esker.project import system_tables as kinds
from esker.project.system_tables import SystemTableKind


@dataclass(frozen=True)
class SystemTable:
    """A table of Esker's own, and the pipeline that it serves."""

    table: TableId
    kind: SystemTableKind
    pipeline: str


def system_tables(project: Project) -> Iterator[SystemTable]:
    """Return every table of Esker's own that a project may have, whether it is there or not."""
    for name, pipeline in project.pipelines.items():
        table = table_of(project, pipeline)
        for kind in kinds.BESIDE_A_TABLE:
            yield SystemTable(_beside(project, table, kind), kind, name)
    for name, consumer in project.consumers.items():
        table = table_of(project, project.pipelines[consumer.source])
        yield SystemTable(dead_letters_of(project, table, name), kinds.DEAD_LETTERS, consumer.source)


def table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that a pipeline loads into."""
    return TableId(project.catalog_name(pipeline.catalog), pipeline.table)


def files_table_of(project: Project, pipeline: Pipeline) -> TableId:
    """Return the table that records which files were loaded."""
    return _beside(project, table_of(project, pipeline), kinds.FILES)


def log_of(project: Project, table: TableId) -> TableId:
    """Return the change log of a table."""
    return _beside(project, table, kinds.CHANGES)


def quarantine_of(project: Project, table: TableId) -> TableId:
    """Return the quarantine of a table."""
    return _beside(project, table, kinds.QUARANTINE)


def quality_of(project: Project, table: TableId) -> TableId:
    """Return the quality history of a table."""
    return _beside(project, table, kinds.QUALITY)


def deletes_of(project: Project, table: TableId) -> TableId:
    """Return the table that remembers deletes of a table's rows."""
    return _beside(project, table, kinds.DELETES)


def dead_letters_of(project: Project, table: TableId, consumer: str) -> TableId:
    """Return the table of a consumer's dead letters."""
    namespace = project.system_namespace or table.namespace
    return TableId(table.catalog, f"{namespace}.{consumer}{kinds.DEAD_LETTERS.ending}")


def own_tables(project: Project, table: TableId) -> list[SystemTable]:
    """Return Esker's own tables for a pipeline's table, the dead letters of its consumers included."""
    found = {
        each.table: each
        for each in system_tables(project)
        if table_of(project, project.pipelines[each.pipeline]) == table
    }
    return list(found.values())


def _beside(project: Project, table: TableId, kind: SystemTableKind) -> TableId:
    if project.system_namespace:
        return TableId(
            table.catalog, f"{project.system_namespace}.{table.name.replace('.', '__')}{kind.ending}"
        )
    return TableId(table.catalog, f"{table.name}{kind.ending}")
