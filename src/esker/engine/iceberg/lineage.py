"""What happened to a table between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from esker.engine.iceberg.metadata import Snapshot, SnapshotId
from esker.engine.iceberg.table import Table, find_snapshot
from esker.engine.session import Engine


def snapshots_since(engine: Engine, table: Table, start: SnapshotId) -> list[Snapshot] | None:
    """Return the snapshots after one, up to the newest, newest first.

    None when it is none of the newest one's ancestors any more: it was expired, or the table rolled back.
    """
    found: list[Snapshot] = []
    for snapshot in _back(engine, table):
        if snapshot.id == start:
            return found
        found.append(snapshot)
    return None


def _back(engine: Engine, table: Table) -> Iterator[Snapshot]:
    snapshot = table.snapshot
    while snapshot is not None:
        yield snapshot
        if snapshot.parent is None:
            return
        snapshot = find_snapshot(engine, table.id, snapshot.parent)
