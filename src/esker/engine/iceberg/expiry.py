"""Forget old snapshots of a table, with the files that only they hold."""

from __future__ import annotations

from datetime import datetime

from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.session import Engine
from esker.project.catalogs.s3tables import S3TablesCatalog


def expire_snapshots(engine: Engine, table: TableId, *, keep: int, before: datetime) -> None:
    """Expire snapshots from before a moment, but for the newest ones, and delete their files.

    A table bucket does that by itself, and lets nobody else delete files.
    """
    if isinstance(engine.project.catalogs()[table.catalog], S3TablesCatalog):
        return
    with explained(f'cannot expire snapshots of table "{table}"', engine.log):
        change = java_table(engine, table).expireSnapshots()
        change.expireOlderThan(int(before.timestamp() * 1000)).retainLast(keep).commit()
