"""What a table's metadata says, as values.

Every fact costs a call into the JVM. A metadata file never changes: what has been read of one is kept,
and serves whoever looks at the table next.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from esker.engine.iceberg.columns import columns_of
from esker.engine.iceberg.java import each, iceberg, text_map
from esker.engine.iceberg.manifests import SpecField
from esker.engine.iceberg.table_metadata import Metadata, Snapshot, SnapshotId, described_partition
from esker.project.layout import SortField

__all__ = [
    "Metadata",
    "Snapshot",
    "SnapshotId",
    "is_same",
    "read_metadata",
    "read_snapshot",
    "read_spec",
    "snapshot_at",
]

_MOST = 64
"""So many metadata files are kept in mind."""
_kept: dict[tuple[str, str, int], Metadata] = {}


def read_metadata(jvm: Any, metadata: Any) -> Metadata:
    """Return one of Iceberg's metadata objects as a value."""
    version = metadata.metadataFileLocation()
    # Some catalogs number their files: a table that is made anew has the names of the old one again.
    key = (version or "", metadata.uuid(), metadata.lastUpdatedMillis())
    known = _kept.get(key)
    if known is not None:
        return known
    schema = metadata.schema()
    schema_text: str = iceberg(jvm, "SchemaParser").toJson(schema)
    found = Metadata(
        version=version,
        uuid=metadata.uuid(),
        location=metadata.location(),
        format_version=metadata.formatVersion(),
        schema_id=metadata.currentSchemaId(),
        schema=schema_text,
        columns=columns_of(json.loads(schema_text)),
        partition_fields=_partition_fields(metadata.spec(), schema),
        sort_fields=_sort_fields(jvm, metadata.sortOrder(), schema),
        properties=text_map(jvm, metadata.properties()),
        snapshot=read_snapshot(jvm, metadata.currentSnapshot()),
    )
    if version is not None:
        _kept[key] = found
        while len(_kept) > _MOST:
            _kept.pop(next(iter(_kept)), None)
    return found


def read_spec(jvm: Any, metadata: Any, spec_id: int) -> tuple[SpecField, ...]:
    """Return the fields of one of a table's partition specs.

    A table that was copied, restored or branched off has the uuid of another one, and specs of its own: what
    is read here holds for this metadata alone.
    """
    text = iceberg(jvm, "PartitionSpecParser").toJson(metadata.spec(spec_id))
    # A field of several columns has no single source: -1 is no column.
    return tuple(
        SpecField(field.get("source-id", -1), field["transform"]) for field in json.loads(text)["fields"]
    )


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two of Iceberg's metadata objects are one state of one table.

    False where a catalog does not say where the metadata lies: nothing else tells it for sure.
    """
    return one.metadataFileLocation() is not None and _state(one) == _state(other)


def _state(metadata: Any) -> tuple[Any, ...]:
    snapshot = metadata.currentSnapshot()
    return (
        metadata.uuid(),
        metadata.metadataFileLocation(),
        metadata.lastUpdatedMillis(),
        snapshot.snapshotId() if snapshot is not None else None,
    )


def snapshot_at(metadata: Any, moment: datetime) -> Any | None:
    """Return Iceberg's object for the snapshot that was current at a moment; None if none is known."""
    newest = None
    for entry in each(metadata.snapshotLog()):
        if entry.timestampMillis() <= moment.timestamp() * 1000:
            newest = entry.snapshotId()
    return metadata.snapshot(newest) if newest is not None else None


def _partition_fields(spec: Any, schema: Any) -> tuple[str, ...]:
    if spec.isUnpartitioned():
        return ()
    # Format version 1 keeps fields that were dropped, without values; perhaps their columns are gone.
    fields = ((field, field.transform().toString()) for field in each(spec.fields()))
    return tuple(_described(field, schema) for field, transform in fields if transform != "void")


def _sort_fields(jvm: Any, order: Any, schema: Any) -> tuple[SortField, ...]:
    """Return a sort order up to the first field that is more than a column."""
    if order.isUnsorted():
        return ()
    found = []
    for field in json.loads(iceberg(jvm, "SortOrderParser").toJson(order))["fields"]:
        if field["transform"] != "identity":
            break
        found.append(SortField(schema.findColumnName(field["source-id"]), field["direction"] == "desc"))
    return tuple(found)


def _described(field: Any, schema: Any) -> str:
    return described_partition(str(schema.findColumnName(field.sourceId())), field.transform().toString())


def read_snapshot(jvm: Any, snapshot: Any) -> Snapshot | None:
    """Return one of Iceberg's snapshot objects as a value."""
    if snapshot is None:
        return None
    return Snapshot(
        id=snapshot.snapshotId(),
        parent=snapshot.parentId(),
        sequence=snapshot.sequenceNumber(),
        committed_at=datetime.fromtimestamp(snapshot.timestampMillis() / 1000, UTC),
        operation=snapshot.operation(),
        summary=text_map(jvm, snapshot.summary()),
        schema_id=snapshot.schemaId(),
        manifest_list=snapshot.manifestListLocation(),
    )
