"""Pipelines of families, as far as they are known without asking a database. Spark is not needed for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from esker.errors import TableUnsuitable
from esker.ledger.found_tables import remembered_tables
from esker.ledger.state import State
from esker.project import Project
from esker.project.families import Family, Member, SourceTable


def recall(project: Project, state: State, family: Family) -> bool:
    """Give a project the pipelines of tables that were found before; tell whether there are any."""
    tables = remembered_tables(state, project.state_key, family.name)
    project.join(family, suitable(family, tables))
    return bool(tables)


def recall_all(project: Project, state: State) -> None:
    """Do so for all families."""
    for family in project.families.values():
        recall(project, state, family)


def suitable(family: Family, tables: Iterable[SourceTable]) -> Iterator[Member]:
    """Yield the pipelines of those tables that can be loaded."""
    for table in tables:
        try:
            yield family.member(table)
        except TableUnsuitable:
            continue
