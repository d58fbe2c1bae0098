"""The quarantine `<table>__quarantine`: rows that could not be loaded, with the reason.

It is filled from the outbox, like the change log: a row is there exactly once, and only if the batch it
came with was published.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.change_log import LogRun
from esker.ledger.outbox import QUARANTINE, Files, SideTable
from esker.project.types import Array, Column, Plain

QUARANTINE_COLUMNS = (
    Column("changeset", Plain("bigint"), required=True, doc="The changeset that it came with"),
    Column("pipeline", Plain("string"), required=True),
    Column("run", Plain("string"), required=True),
    Column("batch", Plain("string"), required=True),
    Column("row", Plain("bigint"), required=True, doc="Place of the row in its batch"),
    Column("origin", Plain("string"), doc="The file that it stood in"),
    Column("rules", Array(Plain("string")), doc="The rules that it broke"),
    Column("reason", Plain("string"), required=True, doc="Why, in words"),
    Column("payload", Plain("string"), doc="The row, as JSON"),
    Column("quarantined_at", Plain("timestamp"), required=True),
)


@dataclass(frozen=True)
class Quarantine:
    """The quarantine of one table, as a place to stage the rejected rows of a batch."""

    engine: Engine
    side: SideTable

    @classmethod
    def of(cls, engine: Engine, table: TableId) -> Quarantine:
        return cls(engine, SideTable.of(engine, table, QUARANTINE))

    def stage(self, rows: pa.Table, shared: LogRun, changeset: int, moment: datetime, token: str) -> Files:
        """Write rejected rows as files of the quarantine; they count once a publish has named them.

        `rows` has the columns row, origin, rules, reason and payload.
        """
        attempt = Attempt(self.engine, self.side.id)
        count = len(rows)
        given = {
            "changeset": pa.repeat(pa.scalar(changeset, pa.int64()), count),
            "pipeline": pa.repeat(pa.scalar(shared.pipeline), count),
            "run": pa.repeat(pa.scalar(shared.run), count),
            "batch": pa.repeat(pa.scalar(shared.batch), count),
            "quarantined_at": pa.repeat(pa.scalar(moment, pa.timestamp("us", tz="UTC")), count),
            **{name: rows.column(name) for name in rows.column_names},
        }
        names = attempt.schema.arrow.names
        staged = attempt.write(pa.table([given[name] for name in names], names=names), f"{changeset}-{token}")
        return self.side.listed(changeset, staged.places)
