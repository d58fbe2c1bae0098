"""Tables that were found in databases: who looks at their pipelines later need not ask the database again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa

from esker.ledger.state import State, found_tables
from esker.project.families import SourceTable


def remember_tables(
    state: State, project: str, family: str, found: Sequence[SourceTable], gone: Sequence[SourceTable]
) -> None:
    """Keep exactly these tables of a family: those that are there, and those that were."""
    with state.begin() as connection:
        connection.execute(found_tables.delete().where(_key(project, family)))
        for table in (*found, *gone):
            connection.execute(
                found_tables.insert().values(
                    project=project,
                    family=family,
                    schema=table.schema,
                    name=table.name,
                    key=json.dumps(table.key),
                    is_gone=table in gone,
                )
            )


def remembered_tables(state: State, project: str, family: str) -> Sequence[SourceTable]:
    """Return the tables of a family that were found before, also those that are gone since."""
    return _read(state, _key(project, family))


def gone_tables(state: State, project: str, family: str) -> Sequence[SourceTable]:
    """Return those that were gone when the database was asked last."""
    return _read(state, _key(project, family) & found_tables.c.is_gone)


def _read(state: State, condition: sa.ColumnElement[bool]) -> Sequence[SourceTable]:
    query = sa.select(found_tables).where(condition)
    query = query.order_by(found_tables.c.schema, found_tables.c.name)
    with state.begin() as connection:
        rows = connection.execute(query).all()
    return [SourceTable(row.schema, row.name, tuple(json.loads(row.key))) for row in rows]


def _key(project: str, family: str) -> sa.ColumnElement[bool]:
    return (found_tables.c.project == project) & (found_tables.c.family == family)
