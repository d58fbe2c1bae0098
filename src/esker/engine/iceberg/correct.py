"""Correct what manifests say of data files, by manifests that carry all files over.

The files stay as they are, and keep the snapshot and the sequence numbers that they were added with: deletes
apply as before, and no reader of changes sees one. Removing a file and adding it again in one snapshot would
say the same, but whoever expires that snapshot deletes a file for which it holds a removal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from esker.engine.iceberg.content_file import content_file
from esker.engine.iceberg.file_metrics import Correction
from esker.engine.iceberg.java import each, iceberg
from esker.engine.iceberg.manifest_files import read_manifest, read_manifest_list
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table_files import TableFiles


def corrected_manifests(
    table: Any, jvm: Any, files: TableFiles, base: Any, corrections: Iterable[Correction]
) -> list[tuple[Any, Any]]:
    """Write manifests with corrected entries; return those of main that they replace, each with its new one.

    Files that main no longer has are passed over.
    """
    wanted = {correction.path: correction for correction in corrections}
    snapshot = base.currentSnapshot()
    if snapshot is None:
        return []
    old = {str(manifest.path()): manifest for manifest in each(snapshot.dataManifests(table.io()))}
    replaced = []
    for manifest in read_manifest_list(files, snapshot.manifestListLocation()).manifests:
        if manifest.location not in old:
            continue  # of deletes
        entries = read_manifest(files, manifest)
        if any(entry.path in wanted for entry in entries):
            it = old[manifest.location]
            replaced.append((it, _rewritten(table, jvm, base, it, entries, wanted)))
    return replaced


def _rewritten(
    table: Any,
    jvm: Any,
    base: Any,
    manifest: Any,
    entries: tuple[FileEntry, ...],
    wanted: Mapping[str, Correction],
) -> Any:
    manifests, io = iceberg(jvm, "ManifestFiles"), table.io()
    spec = table.specs().get(manifest.partitionSpecId())
    location = table.operations().metadataFileLocation(f"{uuid4()}-m0.avro")
    writer = manifests.write(base.formatVersion(), spec, io.newOutputFile(location), None)
    reader = manifests.read(manifest, io, table.specs())
    try:
        for entry, file in zip(entries, each(reader), strict=True):
            correction = wanted.get(entry.path)
            right = file if correction is None else _corrected(jvm, spec, file, entry, correction)
            assert entry.snapshot is not None
            writer.existing(right, entry.snapshot, entry.sequence, entry.added)
    finally:
        reader.close()
        writer.close()
    return writer.toManifestFile()


def _corrected(jvm: Any, spec: Any, file: Any, entry: FileEntry, correction: Correction) -> Any:
    facts: dict[str, Any] = json.loads(iceberg(jvm, "ContentFileParser").toJson(file, spec))
    for name in ("spec-id", "content", "file-path", "file-format", "partition"):
        facts.pop(name, None)
    for name, right in (
        ("lower-bounds", {number: bound.hex().upper() for number, bound in correction.lower.items()}),
        ("upper-bounds", {number: bound.hex().upper() for number, bound in correction.upper.items()}),
        ("nan-value-counts", dict(correction.nans)),
    ):
        told = facts.get(name) or {"keys": [], "values": []}
        values = dict(zip(told["keys"], told["values"], strict=True)) | right
        facts[name] = {"keys": list(values), "values": list(values.values())}
    return content_file(
        jvm,
        spec,
        location=entry.path,
        size=entry.size,
        records=entry.records,
        partition=tuple(value for _, value in entry.partition),
        facts=facts,
    )
