"""The change log `<table>__changes`: one row per change, append-only, readable by any engine.

A changeset's rows stand in files of their own. They hold the row as it was after the change (for a
delete: the last row), so they say the same whatever happened to the table since.
"""

from __future__ import annotations

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
    log_columns,
)
from esker.ledger.logged import look_at
from esker.ledger.side_table import LOG, OpenSide, Stamp

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
