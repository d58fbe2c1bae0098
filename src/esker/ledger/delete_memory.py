"""Deletes that no row remembers: `<table>__deletes`, a table beside the table.

A soft delete stays in its row, with its order value. After a hard delete, or a delete of a key that was
never seen, nothing in the table would tell that an older row which arrives later is out of date. So key
and order value are kept here, for a while. It is filled from the outbox, like the change log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.outbox import DELETES, Files, SideTable, drain
from esker.project.pipelines import Pipeline
from esker.project.types import Column, Plain

CHANGESET = "_esker_changeset"
ORDER = "_esker_order"
DELETED_AT = "_esker_deleted_at"


def memory_columns(columns: tuple[Column, ...], pipeline: Pipeline) -> tuple[Column, ...]:
    """Return the columns of the memory of a table with these columns."""
    keys = {name.lower() for name in pipeline.key}
    order = (pipeline.order_by or "").lower()
    return (
        *(Column(c.name, c.type, required=True) for c in columns if c.name.lower() in keys),
        *(Column(ORDER, c.type, doc="Order value of the delete") for c in columns if c.name.lower() == order),
        Column(CHANGESET, Plain("bigint"), required=True),
        Column(DELETED_AT, Plain("timestamp"), required=True),
    )


@dataclass(frozen=True)
class DeleteMemory:
    """The memory of one table's deletes."""

    side: SideTable
    opened: Attempt

    @classmethod
    def of(cls, engine: Engine, table: TableId) -> DeleteMemory:
        opened = Attempt(engine, table)
        return cls(SideTable(table, opened.uuid, opened.location, DELETES), opened)

    @classmethod
    def known(cls, engine: Engine, table: TableId, properties: Mapping[str, str]) -> DeleteMemory | None:
        """Return the memory that a table names, if it names one, with all that it owes appended."""
        side = SideTable.registered(properties, DELETES, table.catalog)
        if side is None:
            return None
        drain(engine, table, properties)
        return cls.of(engine, side.id)

    def recall(self, keys: Keys, since: datetime) -> pa.Table:
        """Return the newest remembered order value of keys: columns `asked`, `forgotten`."""
        found, _ = look_up(self.opened.files, self.opened.schema, keys, [ORDER, DELETED_AT])
        kind = self.opened.schema.arrow.field(ORDER).type
        parts = [
            hits.rows.append_column("asked", hits.asked.cast(pa.int64())).filter(
                pc.greater_equal(hits.rows.column(DELETED_AT), pa.scalar(since, pa.timestamp("us", tz="UTC")))
            )
            for hits in found
        ]
        if not parts:
            return pa.table({"asked": pa.array([], pa.int64()), "forgotten": pa.array([], kind)})
        newest = pa.concat_tables(parts).group_by("asked").aggregate([(ORDER, "max")])
        return newest.rename_columns({f"{ORDER}_max": "forgotten"}).select(["asked", "forgotten"])

    def stage(self, rows: pa.Table, changeset: int, moment: datetime, token: str) -> Files:
        """Write deletes as a file of the memory; it counts once a publish has named it.

        `rows` has the key columns and ORDER.
        """
        count = len(rows)
        given = {
            **{name: rows.column(name) for name in rows.column_names},
            CHANGESET: pa.repeat(pa.scalar(changeset, pa.int64()), count),
            DELETED_AT: pa.repeat(pa.scalar(moment, pa.timestamp("us", tz="UTC")), count),
        }
        names = self.opened.schema.arrow.names
        whole = pa.table([given[name] for name in names], names=names)
        staged = self.opened.write(whole, f"{changeset}-{token}")
        return self.side.listed(changeset, staged.places)
