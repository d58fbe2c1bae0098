"""Forget old snapshots of a table, with the files that only they hold."""

from __future__ import annotations

from datetime import datetime

from esker.engine.failures import explained
from esker.engine.iceberg.stage import can_delete
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.session import Engine


def expire_snapshots(engine: Engine, table: TableId, *, keep: int, before: datetime) -> None:
    """Expire snapshots from before a moment, but for the newest ones, and delete their files.

    A table bucket does that by itself, and lets nobody else delete files.
    """
    with explained(f'cannot expire snapshots of table "{table}"', engine.log):
        found = java_table(engine, table)
        if not can_delete(engine, table.catalog, str(found.location())):
            return
        change = found.expireSnapshots()
        change.expireOlderThan(int(before.timestamp() * 1000)).retainLast(keep).commit()
