"""The change log `<table>__changes`: one row per change, append-only, readable by any engine.

A changeset's rows stand in files of their own. They hold the row as it was after the change (for a
delete: the last row), so they say the same whatever happened to the table since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.outbox import LOG, SideTable, look_at
from esker.project.types import Column, Plain

CHANGESET = "_esker_changeset"
OP = "_esker_op"
HASH_BEFORE = "_esker_hash_before"
HASH_AFTER = "_esker_hash_after"
ORDER = "_esker_order"
PIPELINE = "_esker_pipeline"
RUN = "_esker_run"
BATCH = "_esker_batch"
ROW = "_esker_row"
COMMITTED_AT = "_esker_committed_at"


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


@dataclass(frozen=True)
class LogRun:
    """What all log rows of one batch share."""

    pipeline: str
    run: str
    batch: str


@dataclass(frozen=True)
class ChangeLog:
    """The change log of one table, as a place to stage the changes of a batch."""

    side: SideTable
    _opened: Attempt

    @classmethod
    def of(cls, engine: Engine, table: TableId) -> ChangeLog:
        """Look at a change log, or raise SideTableForeign if it was rolled back."""
        opened = Attempt(engine, table)
        side = SideTable(table, opened.uuid, opened.location, LOG)
        look_at(side, opened)
        return cls(side, opened)

    @property
    def names(self) -> list[str]:
        """The log's columns."""
        names: list[str] = self._opened.schema.arrow.names
        return names

    def stage(
        self, rows: pa.Table, shared: LogRun, changeset: int, moment: datetime, token: str
    ) -> StagedFiles:
        """Write change rows as files of the log; they count once a publish has named them.

        `rows` has the table's columns, and OP, HASH_BEFORE, HASH_AFTER, ROW, ORDER.
        """
        count = len(rows)
        constant = {
            CHANGESET: pa.repeat(pa.scalar(changeset, pa.int64()), count),
            PIPELINE: pa.repeat(pa.scalar(shared.pipeline), count),
            RUN: pa.repeat(pa.scalar(shared.run), count),
            BATCH: pa.repeat(pa.scalar(shared.batch), count),
            COMMITTED_AT: pa.repeat(pa.scalar(moment, pa.timestamp("us", tz="UTC")), count),
        }
        columns = []
        for field in self._opened.schema.arrow:
            if field.name in constant:
                columns.append(constant[field.name])
            elif field.name in rows.column_names:
                columns.append(rows.column(field.name))
            else:
                columns.append(pa.nulls(count, field.type))
        whole = pa.table(columns, names=self.names)
        return self._opened.write(whole, f"{changeset}-{token}")
