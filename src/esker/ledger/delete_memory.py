"""Deletes that no row remembers: `<table>__deletes`, a table beside the table.

A soft delete stays in its row, with its order value. After a hard delete, or a delete of a key that was
never seen, nothing in the table would tell that an older row which arrives later is out of date. So key
and order value are kept here, for a while. It is filled from the outbox, like the change log.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.lookup import Keys, look_up
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.rounds import rounds
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import PublishConflict
from esker.ledger.change_log import CHANGESET, ORDER
from esker.ledger.logged import logged_in, logged_properties
from esker.ledger.outbox import drain
from esker.ledger.side_table import DELETED_AT, DELETES, OpenSide, SideTable, Stamp
from esker.ledger.stored_json import as_document, check_fields, read_property
from esker.ledger.upkeep import put_together
from esker.project.pipelines import Pipeline
from esker.project.types import Column, Plain

LATE = "esker.late"
"""Property of a memory: the longest `late` that any pipeline of any project has asked of it."""
TOLD_AGAIN = timedelta(days=7)
"""How long after a batch its changes may be told again, where their file was lost."""
_TRIES = 5


def longest_late(properties: Mapping[str, str]) -> timedelta:
    """Return how long deletes must be remembered, as far as a memory says it itself."""

    def build(document: Any) -> timedelta:
        check_fields(document, ("seconds",))
        return timedelta(seconds=document["seconds"])

    return read_property(properties, LATE, build) or timedelta()


def late_property(late: timedelta) -> dict[str, str]:
    """Return the property by which a memory says how long deletes must be remembered."""
    return {LATE: as_document({"seconds": math.ceil(late.total_seconds())})}


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
    def known(
        cls, engine: Engine, table: TableId, properties: Mapping[str, str], late: timedelta
    ) -> Self | None:
        """Return the memory that a table names, if it names one, with all that it owes appended.

        It remembers at least for `late` from then on.
        """
        side = SideTable.registered(properties, DELETES, table.catalog)
        if side is None:
            return None
        drain(engine, table, properties)
        return cls.of(engine, side.id).asked(late)

    def asked(self, late: timedelta) -> Self:
        """Return the memory after it has written down that somebody needs its deletes for so long.

        Whoever puts it together may know of other pipelines than this one: those of another project, or of
        another state of the project file. Raises PublishConflict.
        """
        if longest_late(self.opened.properties) >= late:
            return self
        failure: SwapFailed | None = None
        for may_try in rounds(_TRIES):
            # Another attempt than the one that is open: it reads and writes files on what it knows.
            attempt = Attempt(self.engine, self.side.id)
            if longest_late(attempt.properties) >= late:
                return type(self).of(self.engine, self.side.id)
            if may_try:
                try:
                    attempt.set(late_property(late))
                    attempt.swap()
                except SwapFailed as error:
                    failure = error
        raise PublishConflict(str(self.side.id), _TRIES, str(failure))

    @classmethod
    def put_together(cls, engine: Engine, side: SideTable, now: datetime, late: timedelta) -> None:
        """Put the files of a memory together, without deletes that are older than anybody needs.

        That is `late`, or what the memory says where that is longer, and time to tell changes again.
        """

        @cache
        def before() -> pa.Scalar:
            # Read when the files have been: what is asked for later makes the swap fail.
            longest = max(late, longest_late(Attempt(engine, side.id).properties))
            return pa.scalar(now - longest - TOLD_AGAIN, pa.timestamp("us", tz="UTC"))

        def is_old(attempt: Attempt, file: FileEntry) -> bool:
            newest = file.highest(attempt.schema.ids[DELETED_AT])
            return newest is not None and newest < before().value

        def marks(attempt: Attempt, snapshot: int, sequence: int) -> dict[str, str]:
            return logged_properties(logged_in(attempt.properties), snapshot, sequence)

        put_together(
            engine,
            side.id,
            lambda rows, is_whole: rows.filter(pc.greater_equal(rows[DELETED_AT], before())),
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
