"""Deletes that no row remembers: `<table>__deletes`, a table beside the table.

A soft delete stays in its row, with its order value. After a hard delete, or a delete of a key that was
never seen, nothing in the table would tell that an older row which arrives later is out of date. So key
and order value are kept here, for a while. It is filled from the outbox, like the change log.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.change_log import CHANGESET, ORDER
from esker.ledger.logged import logged_in, logged_properties
from esker.ledger.outbox import drain
from esker.ledger.side_table import DELETED_AT, DELETES, OpenSide, SideTable, Stamp
from esker.ledger.upkeep import put_together
from esker.project.pipelines import Pipeline
from esker.project.types import Column, Plain


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


class DeleteMemory(OpenSide):
    """The memory of one table's deletes. Rows that are staged have the key columns and ORDER."""

    property = DELETES

    def shared(self, stamp: Stamp) -> dict[str, Any]:
        return {CHANGESET: stamp.changeset, DELETED_AT: stamp.moment}

    @classmethod
    def known(cls, engine: Engine, table: TableId, properties: Mapping[str, str]) -> Self | None:
        """Return the memory that a table names, if it names one, with all that it owes appended."""
        side = SideTable.registered(properties, DELETES, table.catalog)
        if side is None:
            return None
        drain(engine, table, properties)
        return cls.of(engine, side.id)

    @classmethod
    def put_together(cls, engine: Engine, side: SideTable, since: datetime) -> None:
        """Put the files of a memory together, without deletes from before a moment."""
        before = pa.scalar(since, pa.timestamp("us", tz="UTC"))

        def is_old(attempt: Attempt, file: FileEntry) -> bool:
            newest = file.highest(attempt.schema.ids[DELETED_AT])
            return newest is not None and newest < before.value

        def marks(attempt: Attempt, snapshot: int, sequence: int) -> dict[str, str]:
            return logged_properties(logged_in(attempt.properties), snapshot, sequence)

        put_together(
            engine,
            side.id,
            lambda rows, is_whole: rows.filter(pc.greater_equal(rows[DELETED_AT], before)),
            is_old=is_old,
            marks=marks,
        )

    def recall(self, keys: Keys, since: datetime, *, only_newest: bool) -> pa.Table:
        """Return the remembered order values of keys, or the newest of each: columns `asked`, `forgotten`."""
        located, _ = look_up(self.opened.files, self.opened.schema, keys, [ORDER, DELETED_AT])
        kind = self.opened.schema.arrow.field(ORDER).type
        parts = [
            hits.rows.append_column("asked", hits.asked.cast(pa.int64())).filter(
                pc.greater_equal(hits.rows.column(DELETED_AT), pa.scalar(since, pa.timestamp("us", tz="UTC")))
            )
            for hits in located
        ]
        if not parts:
            return pa.table({"asked": pa.array([], pa.int64()), "forgotten": pa.array([], kind)})
        found = pa.concat_tables(parts)
        if not only_newest:
            return found.select(["asked", ORDER]).rename_columns(["asked", "forgotten"])
        newest = found.group_by("asked").aggregate([(ORDER, "max")])
        return newest.rename_columns({f"{ORDER}_max": "forgotten"}).select(["asked", "forgotten"])
