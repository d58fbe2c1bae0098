"""Dead letters of a consumer, `<consumer>__dead`: rows that its transform or its target refused.

Each row says what became of one id; the one with the highest `event` counts, so that a letter is resolved
by a further row. Rows are only appended. When many files have come together, they are replaced by the last
event of each id, in one swap: whoever adds letters meanwhile makes it fail, and nothing is lost. The table
stands in the lake and not in the state database: a lost letter is a document that is missing, and nobody
would know.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.engine.compat import snapshot_frame, to_arrow
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.engine.iceberg.stage import stage
from esker.engine.iceberg.table import TABLE_DEFAULTS, TableId, exists
from esker.engine.session import Engine
from esker.errors import EskerError
from esker.ledger.append_once import append_once
from esker.ledger.dead_letter_events import (
    ARROW,
    COLUMNS,
    NARROW,
    RESOLVED,
    Waiting,
    current_letters,
    last_of_each,
)
from esker.ledger.upkeep import expire_old

_MOST_FILES = 50
"""More than these are put together: every delivery reads them all."""
_MOST_BYTES = 64_000_000
"""More than this is left to whoever maintains the table: this process would hold all of it."""


_Version = tuple[str, str | None]
_KNOWN: WeakKeyDictionary[Engine, dict[TableId, tuple[_Version, Waiting]]] = WeakKeyDictionary()
"""The letters of one version of each table, which never change: who follows looks every few seconds."""


class DeadLetters:
    """The dead letters of one consumer."""

    def __init__(self, engine: Engine, table: TableId) -> None:
        self.engine, self.table = engine, table

    def waiting(self) -> Waiting:
        """Return the letters that are dead now, all of them."""
        if not exists(self.engine, self.table):
            return Waiting({}, 0)
        attempt = Attempt(self.engine, self.table)
        known = _KNOWN.setdefault(self.engine, {})
        # Of a table that was made anew, some catalogs call the metadata as they called the old one's.
        version = attempt.uuid, attempt.version
        if self.table in known and known[self.table][0] == version and attempt.version is not None:
            return known[self.table][1]
        waiting = current_letters(self._rows(attempt).to_pylist())
        known[self.table] = version, waiting
        return waiting

    def add(self, events: pa.Table | DataFrame) -> None:
        """Append events. The table is made with the first ones."""
        if isinstance(events, pa.Table) and not len(events):
            return
        batch = str(uuid4())
        self.make()
        if isinstance(events, DataFrame):
            staged = stage(self.engine, self.table, events, f"dead-{batch}")
        else:
            attempt = Attempt(self.engine, self.table)
            columns = [events.column(field.name).cast(field.type) for field in attempt.schema.arrow]
            staged = attempt.write(pa.table(columns, schema=attempt.schema.arrow), batch)
        if staged.rows:
            append_once(self.engine, staged, batch, {})
            self._put_together()

    def resolve(self, ids: Sequence[str], event: int, moment: datetime) -> None:
        """Say of letters that they are done with."""
        told = [{"event": event, "id": id_, "status": RESOLVED, "seen_at": moment} for id_ in ids]
        self.add(pa.Table.from_pylist(told, ARROW))

    def make(self) -> None:
        """Make the table, unless it is there."""
        if not exists(self.engine, self.table):
            create(self.engine, NewTable(self.table, COLUMNS, (), TABLE_DEFAULTS))

    def _put_together(self) -> None:
        """Replace many files by the last event of each id. What cannot be done now is done another time."""
        try:
            attempt = Attempt(self.engine, self.table)
            files = attempt.files
            if len(files.data) <= _MOST_FILES or sum(file.size for file in files.data) > _MOST_BYTES:
                return
            if not can_read(files, attempt.schema, files.data):
                return
            events = live_rows(files, attempt.schema, files.data)
            kept = events.take(last_of_each(events.select(NARROW).to_pylist()))
            batch = str(uuid4())
            attempt.replace(attempt.write(kept, batch), {"esker.batch": batch})
            attempt.swap()
            expire_old(self.engine, self.table)
        except (SwapFailed, EskerError):
            # Somebody added letters meanwhile, or it landed and the answer was lost. All letters are there.
            return

    def _rows(self, attempt: Attempt) -> pa.Table:
        files = attempt.files
        if can_read(files, attempt.schema, files.data):
            return live_rows(files, attempt.schema, files.data, NARROW)
        if attempt.current is None:
            return ARROW.empty_table().select(NARROW)
        rows = snapshot_frame(self.engine.spark, self.table.sql, attempt.current)
        return to_arrow(rows.select(*NARROW))
