"""What a table's metadata says, as values: read from Java's objects, or from the file itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from esker.engine.iceberg.table_id import TableId
from esker.project.layout import SortField
from esker.project.types import Column

if TYPE_CHECKING:
    from esker.engine.iceberg.manifests import SpecField
    from esker.engine.iceberg.schema import FieldSchema

SnapshotId = int
STAGED = "esker.staged"
"""Key in the summary of snapshots that were staged on a branch before they were published."""


@dataclass(frozen=True)
class Snapshot:
    """One state of a table."""

    id: SnapshotId
    parent: SnapshotId | None
    sequence: int
    committed_at: datetime
    operation: str
    summary: Mapping[str, str]
    schema_id: int | None
    """The columns of the time when it was made."""
    manifest_list: str


@dataclass(frozen=True)
class PartitionPlace:
    """A field of a partition spec, as files are written under it."""

    column: str | None
    """Path of its column; None where that is gone."""
    transform: str
    kind: str | None
    """The type of its values, as Iceberg writes it."""


@dataclass(frozen=True)
class Spec:
    """A partition spec of a table."""

    id: int
    places: tuple[PartitionPlace, ...]
    fields: tuple[SpecField, ...]


@dataclass(frozen=True)
class Metadata:
    """What one metadata file says."""

    version: str | None
    """Where the file lies: another one for each commit."""
    uuid: str
    location: str
    format_version: int
    schema_id: int
    schema: str
    """The columns, as Iceberg's JSON."""
    columns: tuple[Column, ...]
    partition_fields: tuple[str, ...]
    sort_fields: tuple[SortField, ...]
    properties: Mapping[str, str]
    snapshot: Snapshot | None
    # What only those need who write, and Java says.
    specs: Mapping[int, Spec] = field(default_factory=dict, kw_only=True, compare=False)
    spec_id: int = field(default=0, kw_only=True, compare=False)
    """The spec of new files."""
    branches: frozenset[str] = field(default=frozenset(), kw_only=True, compare=False)
    data_folder: str | None = field(default=None, kw_only=True, compare=False)
    """What the locations of new files of an unpartitioned table begin with, if only names follow."""

    @property
    def spec(self) -> Spec:
        """The partition spec of new files."""
        return self.specs[self.spec_id]

    @property
    def identifier(self) -> tuple[str, ...]:
        """The columns that identify a row, as the table says."""
        schema = json.loads(self.schema)
        names = {field["id"]: field["name"] for field in schema["fields"]}
        return tuple(names[number] for number in schema.get("identifier-field-ids", ()) if number in names)

    @cached_property
    def fields(self) -> FieldSchema:
        """The columns for Arrow, with their field ids."""
        from esker.engine.iceberg.schema import NAME_MAPPING, field_schema  # noqa: PLC0415 (Arrow)

        names = self.properties.get(NAME_MAPPING, "[]")
        return field_schema(json.loads(self.schema), json.loads(names))


@dataclass(frozen=True)
class Table(Metadata):
    """A table as it was when it was looked at."""

    id: TableId


@dataclass(frozen=True)
class History:
    """What happened to main since one of its snapshots."""

    newer: tuple[Snapshot, ...]
    """The snapshots after it, oldest first, as far as they are known."""
    descends: bool | None
    """Whether main descends from it; None when nobody can tell any more."""


def described_partition(column: str, transform: str) -> str:
    """Return a field of a partition spec as a project file has it: `bucket(16, id)`."""
    if transform == "identity":
        return column
    if "[" in transform:
        kind, _, number = transform.rstrip("]").partition("[")
        return f"{kind}({number}, {column})"
    return f"{transform}({column})"
