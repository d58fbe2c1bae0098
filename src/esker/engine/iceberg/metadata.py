"""What a table's metadata says, as values.

A metadata file never changes: what has been read of one is cached for the next look at the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from esker.engine.iceberg.columns import columns_of
from esker.engine.iceberg.java import each, text_map
from esker.engine.iceberg.manifests import SpecField
from esker.engine.iceberg.schema import field_paths
from esker.engine.iceberg.table_metadata import (
    Metadata,
    PartitionPlace,
    Snapshot,
    SnapshotId,
    Spec,
    described_partition,
)
from esker.project.layout import SortField

__all__ = [
    "Metadata",
    "PartitionPlace",
    "Snapshot",
    "SnapshotId",
    "Spec",
    "is_same",
    "metadata_of",
    "read_snapshot",
    "snapshot_at",
    "snapshot_of",
]

_MOST = 64
"""So many metadata files are kept in mind."""
_kept: dict[tuple[str, str, int], Metadata] = {}


def metadata_of(described: str) -> Metadata:
    """Return as a value what `TableState.java` says of a table."""
    said = json.loads(described)
    version = said["version"]
    # Some catalogs number their files: a table that is made anew has the names of the old one again.
    key = (version or "", said["uuid"], said["updated"])
    known = _kept.get(key)
    if known is not None:
        return known
    schema = json.loads(said["schema"])
    specs = {int(number): _spec(int(number), spec) for number, spec in said["specs"].items()}
    found = Metadata(
        version=version,
        uuid=said["uuid"],
        location=said["location"],
        format_version=said["format_version"],
        schema_id=said["schema_id"],
        schema=said["schema"],
        columns=columns_of(schema),
        specs=specs,
        spec_id=said["spec_id"],
        partition_fields=_partition_fields(specs[said["spec_id"]]),
        sort_fields=_sort_fields(said["sort"], schema),
        properties=said["properties"],
        snapshot=snapshot_of(said["snapshot"]),
        branches=frozenset(said["branches"]),
        data_folder=said["places"],
    )
    if version is not None:
        _kept[key] = found
        while len(_kept) > _MOST:
            _kept.pop(next(iter(_kept)), None)
    return found


def snapshot_of(said: Mapping[str, Any] | None) -> Snapshot | None:
    """Return as a value what `TableState.java` says of a snapshot."""
    if said is None:
        return None
    return Snapshot(
        id=said["id"],
        parent=said["parent"],
        sequence=said["sequence"],
        committed_at=datetime.fromtimestamp(said["moment"] / 1000, UTC),
        operation=said["operation"],
        summary=said["summary"],
        schema_id=said["schema_id"],
        manifest_list=said["manifest_list"],
    )


def _spec(number: int, said: Mapping[str, Any]) -> Spec:
    # A field of several columns has no single source: -1 is no column.
    fields = (
        SpecField(field.get("source-id", -1), field["transform"])
        for field in json.loads(said["spec"])["fields"]
    )
    places = (PartitionPlace(field["column"], field["transform"], field["type"]) for field in said["fields"])
    return Spec(number, tuple(places), tuple(fields))


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


def _partition_fields(spec: Spec) -> tuple[str, ...]:
    # Format version 1 keeps fields that were dropped, without values; perhaps their columns are gone.
    return tuple(_described(place) for place in spec.places if place.transform != "void")


def _sort_fields(order: str | None, schema: dict[str, Any]) -> tuple[SortField, ...]:
    """Return a sort order up to the first field that is more than a column."""
    names = {number: path for path, number in field_paths(schema)}
    found = []
    for each_field in json.loads(order)["fields"] if order is not None else ():
        column = names.get(each_field["source-id"])
        if each_field["transform"] != "identity" or column is None:
            break
        found.append(SortField(column, each_field["direction"] == "desc"))
    return tuple(found)


def _described(place: PartitionPlace) -> str:
    return described_partition(str(place.column), place.transform)


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
