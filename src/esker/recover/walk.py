"""Walk from a table's metadata to its files: every manifest is read, every file is asked for its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from esker.engine.iceberg.manifest_files import (
    ManifestBroken,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table_files import TableFiles
from esker.recover.finding import Checked, Finding

_AT_ONCE = 16
_RESTORE = "Restore the file from the store's older versions or a backup."
_MAGIC = {"orc": b"ORC", "avro": b"Obj\x01", "puffin": b"PFA1"}
_NAMED = 3


@dataclass(frozen=True)
class _Part:
    """A file of a snapshot, and the snapshot that added it."""

    entry: FileEntry
    since: SnapshotId | None


@dataclass
class Walk:
    """One walk over a table's metadata."""

    files: TableFiles
    document: Mapping[str, Any]
    deep: bool = False
    """Look into the files, too: how many rows they say that they have."""
    findings: list[Finding] = field(default_factory=list)
    _parts: dict[str, _Part] = field(default_factory=dict)
    _manifests: dict[str, ManifestFile] = field(default_factory=dict)

    def all(self) -> Checked:
        """Look at everything that branches and tags lead to, and at the lists of the other snapshots."""
        snapshots = _snapshots(self.document)
        wanted = self._named()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="esker-fsck") as pool:
            for snapshot, names in wanted.items():
                self._snapshot(pool, snapshots.get(snapshot), snapshot, names)
            self._others(pool, [each for id, each in snapshots.items() if id not in wanted])
            for found in pool.map(self._file, self._parts.values()):
                self.findings += found
        deletes = sum(part.entry.content != 0 for part in self._parts.values())
        return Checked(len(snapshots), len(self._manifests), len(self._parts) - deletes, deletes)

    def main(self) -> bool:
        """Tell whether the current snapshot's manifests can be read. Its files are not looked at."""
        current = self.document.get("current-snapshot-id")
        if current in (None, -1):
            return True
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="esker-fsck") as pool:
            self._snapshot(pool, _snapshots(self.document).get(current), current, "main")
        return not self.findings

    def _named(self) -> dict[SnapshotId, str]:
        """Return the snapshots that somebody reads by name, main's first, each with its names."""
        refs = {name: ref["snapshot-id"] for name, ref in self.document.get("refs", {}).items()}
        current = self.document.get("current-snapshot-id")
        if current not in (None, -1):
            refs = {"main": current} | refs
        found: dict[SnapshotId, str] = {}
        for name, snapshot in refs.items():
            found[snapshot] = f"{found[snapshot]}, {name}" if snapshot in found else name
        return found

    def _snapshot(
        self, pool: ThreadPoolExecutor, snapshot: Mapping[str, Any] | None, id: SnapshotId, names: str
    ) -> None:
        if snapshot is None:
            self.findings.append(
                Finding(
                    "metadata",
                    f"{names} leads to snapshot {id}, which the metadata does not have",
                    "What it names cannot be read.",
                    "Let it lead to another snapshot, with any engine.",
                    snapshot=id,
                )
            )
            return
        try:
            manifests = _manifests(self.files, snapshot)
        except ManifestBroken as error:
            self.findings.append(
                Finding(
                    "manifest_list",
                    f"the manifest list of snapshot {id} ({names}) cannot be read: {error}",
                    f"Nobody can read {names}.",
                    f"{_RESTORE} {self._way_back(id)}",
                    snapshot["manifest-list"],
                    id,
                )
            )
            return
        fresh = [each for each in manifests if each.location not in self._manifests]
        self._manifests |= {each.location: each for each in fresh}
        for manifest, found in zip(fresh, pool.map(self._manifest, fresh), strict=True):
            if isinstance(found, ManifestBroken):
                self.findings.append(
                    Finding(
                        "manifest",
                        f"a manifest of snapshot {id} ({names}) cannot be read: {found}",
                        "Which files it names is not known, so nobody can read the rows in them.",
                        f"{_RESTORE} {self._way_back(id)}",
                        manifest.location,
                        manifest.added_by,
                    )
                )
                continue
            for entry in found:
                since = entry.snapshot if entry.snapshot is not None else manifest.added_by
                self._parts.setdefault(entry.path, _Part(entry, since))

    def _manifest(self, manifest: ManifestFile) -> tuple[FileEntry, ...] | ManifestBroken:
        try:
            return read_manifest(self.files, manifest)
        except ManifestBroken as error:
            return error

    def _way_back(self, snapshot: SnapshotId) -> str:
        """Return what else can be done when a snapshot cannot be read."""
        snapshots = _snapshots(self.document)
        parent = snapshots.get(snapshot, {}).get("parent-snapshot-id")
        while parent is not None and parent in snapshots:
            document = {"current-snapshot-id": parent, "snapshots": [snapshots[parent]]}
            if Walk(self.files, document).main():
                return (
                    f"Without one, snapshot {parent} is the newest before it that is whole: roll back to it "
                    "with any engine, then take the table as it is: esker adopt."
                )
            parent = snapshots[parent].get("parent-snapshot-id")
        return "No snapshot before it is whole."

    def _others(self, pool: ThreadPoolExecutor, snapshots: list[Mapping[str, Any]]) -> None:
        """See whether the lists of snapshots that nobody names are there."""
        listed = [each for each in snapshots if "manifest-list" in each]
        sizes = pool.map(lambda each: self.files.size(each["manifest-list"]), listed)
        lost = [each for each, size in zip(listed, sizes, strict=True) if size is None]
        if lost:
            ids = ", ".join(str(each["snapshot-id"]) for each in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            self.findings.append(
                Finding(
                    "manifest_list",
                    f"{len(lost)} older snapshot{'s' * (len(lost) > 1)} cannot be read: {ids}{more}",
                    "The table can be read, but not as it was then.",
                    "Expire them, with any engine.",
                    lost[0]["manifest-list"],
                    lost[0]["snapshot-id"],
                    is_damage=False,
                )
            )

    def _file(self, part: _Part) -> list[Finding]:
        entry = part.entry
        size = self.files.size(entry.path)
        if size is None:
            return [self._broken(part, "is not there")]
        if size != entry.size:
            return [self._broken(part, f"has {size:,} bytes, and {entry.size:,} were written")]
        if self.deep and (why := self._inside(entry)) is not None:
            return [self._broken(part, why)]
        return []

    def _inside(self, entry: FileEntry) -> str | None:
        try:
            with self.files.open(entry.path) as stream:
                if entry.format != "parquet":
                    is_kind = stream.read(4).startswith(_MAGIC.get(entry.format, b""))
                    return None if is_kind else f"is no {entry.format} file"
                rows = pq.ParquetFile(stream).metadata.num_rows
        except Exception as error:  # bytes that are no Parquet break a parser in any way
            return f"cannot be read: {error}"
        return None if rows == entry.records else f"has {rows:,} rows, and {entry.records:,} were written"

    def _broken(self, part: _Part, why: str) -> Finding:
        entry = part.entry
        kind = "data" if entry.content == 0 else "delete"
        meaning = (
            f"Its {entry.records:,} rows cannot be read, and whoever scans it fails."
            if entry.content == 0
            else "Whoever scans what it deletes rows from fails."
        )
        return Finding(
            f"{kind}_file",
            f"a {kind} file {why}{self._told_of(part.since)}",
            meaning,
            f"{_RESTORE} {'' if entry.content else 'Without one, its rows must be loaded again.'}".strip(),
            entry.path,
            part.since,
        )

    def _told_of(self, since: SnapshotId | None) -> str:
        summary = _snapshots(self.document).get(since, {}).get("summary", {})
        if "esker.changeset" not in summary:
            return ""
        return f" (changeset {summary['esker.changeset']} of pipeline {summary.get('esker.pipeline')})"


@dataclass(frozen=True)
class LostSnapshot:
    """A snapshot that stands in the store, and not in the metadata that is to be restored."""

    id: SnapshotId
    sequence: int
    added_rows: int
    manifests: tuple[ManifestFile, ...] = field(default=(), repr=False)
    """Those that it added."""

    def as_json(self) -> dict[str, Any]:
        return {"snapshot_id": self.id, "sequence": self.sequence, "added_rows": self.added_rows}


def lost_snapshots(files: TableFiles, folder: str, document: Mapping[str, Any]) -> Iterator[LostSnapshot]:
    """Yield the snapshots, newer than a table's metadata, whose manifest lists lie beside it.

    One whose commit failed may be among them: it looks the same.
    """
    known = {str(id) for id in _snapshots(document)}
    last = int(document.get("last-sequence-number", 0))
    for name in files.names(folder):
        parts = name.split("-")
        if parts[0] != "snap" or not name.endswith(".avro") or parts[1] in known:
            continue
        try:
            found = read_manifest_list(files, f"{folder}/{name}")
        except ManifestBroken:
            continue
        sequence = int(found.facts.get("sequence-number", "0"))
        if sequence > last or not last:
            own = tuple(each for each in found.manifests if str(each.added_by) == parts[1])
            yield LostSnapshot(int(parts[1]), sequence, sum(each.added_rows for each in own), own)


def added_files(files: TableFiles, lost: LostSnapshot) -> Iterator[tuple[str, int]]:
    """Yield the data files that a lost snapshot added and that are still there, with their sizes."""
    for manifest in lost.manifests:
        try:
            entries = read_manifest(files, manifest)
        except ManifestBroken:
            continue
        for entry in entries:
            if (
                entry.content == 0
                and entry.snapshot in (None, lost.id)
                and files.size(entry.path) == entry.size
            ):
                yield entry.path, entry.size


def _manifests(files: TableFiles, snapshot: Mapping[str, Any]) -> tuple[ManifestFile, ...]:
    if "manifest-list" in snapshot:
        return read_manifest_list(files, snapshot["manifest-list"]).manifests
    # Tables of the first days of format version 1 have no lists.
    id = snapshot["snapshot-id"]
    return tuple(ManifestFile(each, None, 0, 0, id, 0) for each in snapshot.get("manifests", ()))


def _snapshots(document: Mapping[str, Any]) -> dict[Any, Mapping[str, Any]]:
    return {each["snapshot-id"]: each for each in document.get("snapshots", ())}
