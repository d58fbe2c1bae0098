"""What happened to a table between two snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from esker.engine.failures import explained
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.metadata import Snapshot, SnapshotId
from esker.engine.iceberg.table import Table, TableId, find_snapshot, find_table, java_table
from esker.engine.session import Engine


def line_of(engine: Engine, table: TableId) -> list[Snapshot]:
    """Return the newest snapshot of a table and those before it, oldest first; none when there is no table.

    Expired ones are missing. However many there are, it is one call into the JVM.
    """
    if find_table(engine, table) is None:
        return []
    jvm: Any = engine.spark.sparkContext._jvm
    with explained(f'cannot load table "{table}"', engine.log):
        current = java_table(engine, table).operations().current()
        document = json.loads(iceberg(jvm, "TableMetadataParser").toJson(current))
    snapshots = {each["snapshot-id"]: each for each in document.get("snapshots", ())}
    found: list[Snapshot] = []
    newest = snapshots.get(document.get("current-snapshot-id"))
    while newest is not None:
        found.append(_snapshot(newest))
        newest = snapshots.get(newest.get("parent-snapshot-id"))
    return found[::-1]


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    summary = document.get("summary", {})
    return Snapshot(
        id=document["snapshot-id"],
        parent=document.get("parent-snapshot-id"),
        sequence=document.get("sequence-number", 0),
        committed_at=datetime.fromtimestamp(document["timestamp-ms"] / 1000, UTC),
        operation=summary.get("operation", ""),
        summary=summary,
        schema_id=document.get("schema-id"),
        manifest_list=document.get("manifest-list", ""),
    )


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
