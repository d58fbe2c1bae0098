"""Positions of slices that held no rows.

An empty slice commits nothing to the table. Its position is remembered here, under exactly the ledger
entry it was read from, so that the next run need not read it again. If the entry is another by then
(restored table, lost database), what is remembered means nothing and is not used.
"""

from __future__ import annotations

import json

import sqlalchemy as sa

from esker.ledger.entry import LedgerEntry, Position, entry_digest
from esker.ledger.state import State, remembered


def remember(
    state: State, project: str, pipeline: str, entry: LedgerEntry | None, position: Position
) -> None:
    """Keep a position that lies beyond the ledger's."""
    key = (remembered.c.project == project) & (remembered.c.pipeline == pipeline)
    with state.begin() as connection:
        connection.execute(remembered.delete().where(key))
        connection.execute(
            remembered.insert().values(
                project=project,
                pipeline=pipeline,
                entry=entry_digest(entry),
                position=json.dumps(position),
            )
        )


def recall(state: State, project: str, pipeline: str, entry: LedgerEntry | None) -> Position | None:
    """Return the position to go on from: the remembered one, or the ledger's."""
    query = sa.select(remembered.c.position).where(
        remembered.c.project == project,
        remembered.c.pipeline == pipeline,
        remembered.c.entry == entry_digest(entry),
    )
    with state.begin() as connection:
        text = connection.execute(query).scalar()
    if text is not None:
        found: Position = json.loads(text)
        return found
    return entry.position if entry else None
