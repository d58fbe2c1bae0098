"""Manifest lists and manifests as they lie in the store, read one by one to see what is broken."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fastavro

from esker.engine.iceberg.file_metrics import Told, told_in
from esker.engine.iceberg.manifests import FileEntry, entries_of
from esker.engine.iceberg.table_files import TableFiles


class ManifestBroken(Exception):
    """A manifest list or manifest that cannot be read, and why."""


@dataclass(frozen=True)
class ManifestFile:
    """A manifest, as a snapshot's list names it."""

    location: str
    size: int | None
    sequence: int
    spec_id: int
    added_by: int | None
    """The snapshot that wrote it."""
    added_rows: int
    removed_files: int = 0


@dataclass(frozen=True)
class ManifestList:
    """What a snapshot's list says of itself, and the manifests that it names."""

    facts: Mapping[str, str]
    manifests: tuple[ManifestFile, ...]


def read_manifest_list(files: TableFiles, location: str) -> ManifestList:
    """Return a snapshot's list of manifests, or raise ManifestBroken."""
    reader = _reader(files, location, None)
    records = _records(reader)
    return ManifestList(
        facts={key: str(value) for key, value in reader.metadata.items()},
        manifests=tuple(
            ManifestFile(
                location=record["manifest_path"],
                size=record["manifest_length"],
                sequence=record.get("sequence_number") or 0,
                spec_id=record["partition_spec_id"],
                added_by=record.get("added_snapshot_id"),
                added_rows=record.get("added_rows_count") or 0,
                removed_files=record.get("deleted_files_count") or 0,
            )
            for record in records
        ),
    )


def read_manifest(files: TableFiles, manifest: ManifestFile) -> tuple[FileEntry, ...]:
    """Return the files that a manifest names, or raise ManifestBroken."""
    records = _records(_reader(files, manifest.location, manifest.size))
    return entries_of(records, manifest.sequence, manifest.spec_id, manifest.added_by)


def read_told(files: TableFiles, manifest: ManifestFile) -> list[Told]:
    """Return a manifest's Parquet data files with what it says of them, or raise ManifestBroken."""
    records = _records(_reader(files, manifest.location, manifest.size))
    return list(told_in(records, manifest.sequence, manifest.spec_id, manifest.added_by))


def _reader(files: TableFiles, location: str, size: int | None) -> Any:
    try:
        content = files.read(location)
    except FileNotFoundError:
        raise ManifestBroken("it is not there") from None
    if size is not None and len(content) != size:
        raise ManifestBroken(f"it has {len(content):,} bytes, and {size:,} were written")
    try:
        return fastavro.reader(io.BytesIO(content))
    except Exception as error:  # bytes that are no Avro break a parser in any way
        raise ManifestBroken(f"it is no Avro file: {error}") from None


def _records(reader: Any) -> list[dict[str, Any]]:
    try:
        return list(reader)
    except Exception as error:
        raise ManifestBroken(f"it is cut off, or altered: {error}") from None
