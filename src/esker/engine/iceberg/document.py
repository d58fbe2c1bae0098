"""A table by its metadata file, read in this process: what an `Attempt` says by Java's objects, without Java.

What cannot be told from this one file, and from the files of its snapshots, is not guessed: `Undecided` then
sends the question to Java. Arrow is loaded for the files of snapshots, and not for the metadata alone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from esker.engine.iceberg.columns import columns_of
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import (
    STAGED,
    History,
    Metadata,
    Snapshot,
    SnapshotId,
    Table,
    described_partition,
)
from esker.project.layout import SortField

if TYPE_CHECKING:
    from esker.engine.iceberg.manifests import FileEntry, LiveFiles, SpecField
    from esker.engine.iceberg.schema import FieldSchema
    from esker.engine.store import Store

_KNOWN_VERSIONS = (1, 2, 3)


class Undecided(Exception):
    """This process cannot tell; Java can."""


@dataclass(frozen=True)
class Document:
    """A table as it was when its metadata file was read."""

    id: TableId
    location: str
    """Of the metadata file."""
    content: Mapping[str, Any]
    open_store: Callable[[], Store] = dataclasses.field(compare=False, repr=False)

    @cached_property
    def store(self) -> Store:
        """The store that has the table's files."""
        return self.open_store()

    @cached_property
    def table(self) -> Table:
        """The table as a value, as Java would give it."""
        metadata = metadata_of(self.content, self.location)
        return Table(**{each.name: getattr(metadata, each.name) for each in fields(metadata)}, id=self.id)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.table.properties

    @property
    def uuid(self) -> str:
        """Tells the table from another one of its name."""
        return self.table.uuid

    @property
    def current(self) -> SnapshotId | None:
        """The newest snapshot of main."""
        return self.table.snapshot.id if self.table.snapshot else None

    @property
    def sequence(self) -> int:
        """The sequence number of the current snapshot."""
        return self.table.snapshot.sequence if self.table.snapshot else 0

    @property
    def schema(self) -> FieldSchema:
        """The table's columns, with their field ids."""
        return self.table.fields

    @cached_property
    def files(self) -> LiveFiles:
        """The files of the current snapshot. Raises FileNotFoundError when they have been expired."""
        from esker.engine.iceberg.manifests import live_files  # noqa: PLC0415 (Arrow)

        snapshot = self.table.snapshot
        manifests = snapshot.manifest_list if snapshot else None
        return live_files(self.store, manifests, spec_of=self._spec_of)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots that the table has, in the order of the file."""
        return tuple(self._snapshots.values())

    def line(self) -> tuple[Snapshot, ...]:
        """Return the newest snapshot and those before it, oldest first, as far as they are not expired."""
        found: list[Snapshot] = []
        current = self.table.snapshot
        while current is not None:
            found.append(current)
            current = self._snapshots.get(current.parent) if current.parent is not None else None
        return tuple(reversed(found))

    def has_values_in(self, column: str) -> bool:
        """Tell whether files of the current snapshot may have values in a column: not if it came later."""
        from esker.engine.iceberg.schema import field_schema  # noqa: PLC0415 (Arrow)

        current, number = self.table.snapshot, self.schema.ids.get(column)
        if current is None or number is None:
            return False
        known = _schemas(self.content).get(current.schema_id) if current.schema_id is not None else None
        return known is None or number in field_schema(known).ids.values()

    def descends(self, snapshot: SnapshotId, sequence: int) -> bool | None:
        """Tell whether main descends from a snapshot."""
        return self.history(snapshot, sequence).descends

    def history(self, snapshot: SnapshotId, sequence: int) -> History:
        """Return what happened since a snapshot, which has this sequence number.

        Raises Undecided where parents have been expired: Java looks into earlier metadata files.
        """
        newer: list[Snapshot] = []
        current = self.table.snapshot
        while current is not None and current.id != snapshot:
            newer.append(current)
            # Tables of format version 1 number nothing: there only the walk itself can tell.
            if current.parent is None or (sequence and current.sequence <= sequence):
                return History(tuple(reversed(newer)), False)
            if current.parent not in self._snapshots:
                raise Undecided(f"snapshot {current.parent} has been expired")
            current = self._snapshots[current.parent]
        return History(tuple(reversed(newer)), current is not None)

    def removed_data(self, snapshot: Snapshot) -> list[FileEntry] | None:
        """Return the data files that a snapshot took out of the table; None when nobody can tell."""
        from esker.engine.iceberg.manifests import removed_data  # noqa: PLC0415 (Arrow)

        try:
            return removed_data(self.store, snapshot.manifest_list, snapshot.id)
        except FileNotFoundError:
            return None  # expired

    def last_snapshot_with(self, key: str, value: str) -> SnapshotId | None:
        """Return the newest known snapshot whose summary holds a value; staged ones do not count."""
        published = {entry["snapshot-id"] for entry in self.content.get("snapshot-log", ())}
        found = [
            each.id
            for each in self.snapshots
            if each.summary.get(key) == value and (STAGED not in each.summary or each.id in published)
        ]
        return found[-1] if found else None

    @cached_property
    def _snapshots(self) -> dict[SnapshotId, Snapshot]:
        read = (_snapshot(each) for each in self.content.get("snapshots") or ())
        return {each.id: each for each in read}

    def _spec_of(self, spec_id: int) -> tuple[SpecField, ...]:
        from esker.engine.iceberg.manifests import SpecField  # noqa: PLC0415 (Arrow)

        # A field of several columns has no single source: -1 is no column.
        return tuple(
            SpecField(field.get("source-id", -1), field["transform"])
            for field in _specs(self.content).get(spec_id, ())
        )


def read_document(table: TableId, location: str, text: str, open_store: Callable[[], Store]) -> Document:
    """Return a table by what its metadata file holds, or raise Undecided where it is no such file."""
    try:
        content = json.loads(text)
        found = Document(table, location, content, open_store)
        if content["format-version"] not in _KNOWN_VERSIONS:
            raise Undecided(f"format version {content['format-version']}")
        _ = found.table, found.snapshots
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Undecided(f"{location}: {type(error).__name__} {error}") from error
    return found


def metadata_of(content: Mapping[str, Any], location: str) -> Metadata:
    """Return what a metadata file says, as a value. `location` is where it lies."""
    schema_id = content.get("current-schema-id", content.get("schema", {}).get("schema-id", 0))
    schema = _schemas(content)[schema_id]
    names = dict(_names(schema["fields"]))
    current = content.get("current-snapshot-id")
    snapshots = {each["snapshot-id"]: each for each in content.get("snapshots") or ()}
    has_snapshot = current is not None and current != -1
    return Metadata(
        version=location,
        uuid=content["table-uuid"],
        location=content["location"],
        format_version=content["format-version"],
        schema_id=schema_id,
        schema=json.dumps({"type": "struct", **schema}),
        columns=columns_of(schema),
        partition_fields=_partition_fields(content, names),
        sort_fields=_sort_fields(content, names),
        properties=content.get("properties") or {},
        snapshot=_snapshot(snapshots[current]) if has_snapshot else None,
    )


def _schemas(content: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the schemas by id. The first tables of format version 1 had one, without an id."""
    known = content.get("schemas") or [{"schema-id": 0, **content["schema"]}]
    return {each["schema-id"]: each for each in known}


def _specs(content: Mapping[str, Any]) -> dict[int, list[dict[str, Any]]]:
    known = content.get("partition-specs") or [{"spec-id": 0, "fields": content["partition-spec"]}]
    return {each["spec-id"]: each["fields"] for each in known}


def _names(fields_: list[dict[str, Any]], path: str = "") -> Iterator[tuple[int, str]]:
    """Yield the ids and names of columns, and of fields inside structs: only by these files are laid out."""
    for field in fields_:
        yield field["id"], f"{path}{field['name']}"
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _names(kind["fields"], f"{path}{field['name']}.")


def _partition_fields(content: Mapping[str, Any], names: Mapping[int, str]) -> tuple[str, ...]:
    # Format version 1 keeps fields that were dropped, without values; perhaps their columns are gone.
    return tuple(
        described_partition(names[field["source-id"]], field["transform"])
        for field in _specs(content)[content.get("default-spec-id", 0)]
        if field["transform"] != "void"
    )


def _sort_fields(content: Mapping[str, Any], names: Mapping[int, str]) -> tuple[SortField, ...]:
    """Return the sort order up to the first field that is more than a column."""
    orders = {each["order-id"]: each["fields"] for each in content.get("sort-orders") or ()}
    found = []
    for field in orders.get(content.get("default-sort-order-id", 0), ()):
        if field["transform"] != "identity":
            break
        found.append(SortField(names[field["source-id"]], field["direction"] == "desc"))
    return tuple(found)


def _snapshot(content: Mapping[str, Any]) -> Snapshot:
    summary = dict(content["summary"])
    return Snapshot(
        id=content["snapshot-id"],
        parent=content.get("parent-snapshot-id"),
        sequence=content.get("sequence-number", 0),
        committed_at=datetime.fromtimestamp(content["timestamp-ms"] / 1000, UTC),
        operation=summary.pop("operation"),
        summary=summary,
        schema_id=content.get("schema-id"),
        manifest_list=content["manifest-list"],
    )
