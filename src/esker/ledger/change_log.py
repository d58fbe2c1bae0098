"""The change log `<table>__changes`: one row per change, append-only, readable by any engine.

A changeset's rows stand in files of their own. They hold the row as it was after the change (for a
delete: the last row), so they say the same whatever happened to the table since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.change_columns import (
    BATCH,
    CHANGESET,
    COMMITTED_AT,
    HASH_AFTER,
    HASH_BEFORE,
    OP,
    ORDER,
    PIPELINE,
    ROW,
    RUN,
)
from esker.ledger.logged import look_at
from esker.ledger.side_table import LOG, OpenSide, Stamp
from esker.project.types import Column, Plain

__all__ = [
    "BATCH",
    "CHANGESET",
    "COMMITTED_AT",
    "HASH_AFTER",
    "HASH_BEFORE",
    "OP",
    "ORDER",
    "PIPELINE",
    "ROW",
    "RUN",
    "ChangeLog",
    "log_columns",
]


def log_columns(columns: Sequence[Column], order_by: str | None) -> tuple[Column, ...]:
    """Return the columns of a change log for a table's columns."""
    own = [
        Column(CHANGESET, Plain("bigint"), required=True, doc="Number of the changeset, 1, 2, 3…"),
        Column(OP, Plain("string"), required=True, doc="insert, update, delete or undelete"),
        Column(HASH_BEFORE, Plain("bigint"), doc="Row hash before the change"),
        Column(HASH_AFTER, Plain("bigint"), doc="Row hash after the change"),
        Column(PIPELINE, Plain("string"), required=True),
        Column(RUN, Plain("string"), required=True),
        Column(BATCH, Plain("string"), required=True),
        Column(ROW, Plain("bigint"), required=True, doc="Place of the row in its batch"),
        Column(COMMITTED_AT, Plain("timestamp"), required=True),
    ]
    for column in columns:
        if order_by is not None and column.name.lower() == order_by.lower():
            own.append(Column(ORDER, column.type, doc="Order value that decided"))
    # Old changes lack what was added later: nothing of the row itself is required here.
    return (*own, *(Column(column.name, column.type, doc=column.doc) for column in columns))


class ChangeLog(OpenSide):
    """The change log of one table.

    Rows that are staged have the table's columns, and OP, HASH_BEFORE, HASH_AFTER, ROW, ORDER.
    """

    property = LOG

    @classmethod
    def of(cls, engine: Engine, table: TableId) -> Self:
        """Open a change log, or raise SideTableForeign if it was rolled back."""
        log = super().of(engine, table)
        look_at(log.side, log.opened)
        return log

    def shared(self, stamp: Stamp) -> dict[str, Any]:
        return {
            CHANGESET: stamp.changeset,
            PIPELINE: stamp.pipeline,
            RUN: stamp.run,
            BATCH: stamp.batch,
            COMMITTED_AT: stamp.moment,
        }
