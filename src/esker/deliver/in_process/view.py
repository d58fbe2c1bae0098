"""A table as one delivery sees it, read as the small lane reads: the same rows in the same types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.engine.iceberg.lookup import can_read, live_parts, live_rows
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.engine.iceberg.schema import NAME_MAPPING, FieldSchema, field_schema
from esker.reading.lake import OpenTable
from esker.reading.planned import files_at
from esker.reading.readable import while_files_live


@dataclass(frozen=True)
class View:
    """A table as it was when it was opened."""

    table: OpenTable

    @property
    def uuid(self) -> str:
        return str(self.table.metadata.table_uuid)

    @cached_property
    def schema(self) -> FieldSchema:
        """The columns of today."""
        names = self.table.properties.get(NAME_MAPPING, "[]")
        return field_schema(json.loads(self.table.metadata.schema().model_dump_json()), json.loads(names))

    @property
    def tags(self) -> dict[str, int]:
        """The tags, each with the snapshot that it names."""
        refs = self.table.metadata.refs.items()
        return {name: ref.snapshot_id for name, ref in refs if ref.snapshot_ref_type == SnapshotRefType.TAG}

    @cached_property
    def files(self) -> LiveFiles:
        """The files of the newest snapshot."""
        return self.files_at(self.table.current)

    def files_at(self, snapshot: Snapshot | None) -> LiveFiles:
        """Return the files of a snapshot."""
        return files_at(self.table, snapshot)

    def rows(
        self, files: LiveFiles, chosen: Sequence[FileEntry], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the live rows of some files. Raises NeedsSpark for files that only Spark reads."""
        self._check_readable(files, chosen)
        with while_files_live(self.table.name):
            return live_rows(files, self.schema, chosen, columns)

    def parts(self, files: LiveFiles, file: FileEntry) -> Iterator[pa.Table]:
        """Yield the live rows of a file, some thousand at a time. Raises NeedsSpark."""
        self._check_readable(files, [file])
        with while_files_live(self.table.name):
            yield from live_parts(files, self.schema, file)

    def _check_readable(self, files: LiveFiles, chosen: Sequence[FileEntry]) -> None:
        if not can_read(files, self.schema, chosen):
            raise NeedsSpark(f'table "{self.table.name}" has columns, files or deletes that only Spark reads')
