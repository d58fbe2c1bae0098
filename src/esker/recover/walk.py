"""Walk from a table's metadata to its files: every manifest is read, every file is asked for its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow.parquet as pq

from esker.engine.iceberg.manifest_files import (
    ManifestBroken,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table_files import TableFiles
from esker.recover.finding import Checked, Finding
from esker.recover.whole import AT_ONCE, Whole, manifests_of, snapshots_of

_RESTORE = "Restore the file from the store's older versions or a backup."
_MAGIC = {"orc": b"ORC", "avro": b"Obj\x01", "puffin": b"PFA1"}
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a snapshot: what is looked at, and no more, for there may be millions."""

    path: str
    content: int
    format: str
    size: int
    records: int
    since: SnapshotId | None
    """The snapshot that added it."""


@dataclass
class Walk:
    """One walk over a table's metadata."""

    files: TableFiles
    document: Mapping[str, Any]
    deep: bool = False
    """Look into the files, too: how many rows they say that they have."""
    findings: list[Finding] = field(default_factory=list)
    _parts: dict[str, _Part] = field(default_factory=dict)
    _lost: list[tuple[SnapshotId, Finding]] = field(default_factory=list)
    """What keeps a snapshot from being read: by which way to go back is seen in the end."""

    def all(self) -> Checked:
        """Look at everything that branches and tags lead to, and at the lists of the other snapshots."""
        wanted = self._named()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="esker-fsck") as pool:
            for snapshot, names in wanted.items():
                self._snapshot(pool, snapshot, names)
            looked_at = len(self._whole.manifests)
            # Of the ways back only now: what branches and tags have shown need not be read for them again.
            back = {id: self._way_back(id) for id in {id for id, _ in self._lost}}
            self.findings += [replace(each, remedy=f"{_RESTORE} {back[id]}") for id, each in self._lost]
            self._others(pool, [each for id, each in self._snapshots.items() if id not in wanted])
            for found in pool.map(self._file, self._parts.values()):
                self.findings += found
        deletes = sum(part.content != 0 for part in self._parts.values())
        return Checked(len(self._snapshots), looked_at, len(self._parts) - deletes, deletes)

    @cached_property
    def _snapshots(self) -> dict[Any, Mapping[str, Any]]:
        return snapshots_of(self.document)

    @cached_property
    def _whole(self) -> Whole:
        return Whole(self.files)

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

    def _snapshot(self, pool: ThreadPoolExecutor, id: SnapshotId, names: str) -> None:
        snapshot = self._snapshots.get(id)
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
            manifests = manifests_of(self.files, snapshot)
        except ManifestBroken as error:
            lost = Finding(
                "manifest_list",
                f"the manifest list of snapshot {id} ({names}) cannot be read: {error}",
                f"Nobody can read {names}.",
                _RESTORE,
                snapshot["manifest-list"],
                id,
            )
            self._lost.append((id, lost))
            self._whole.note(id, is_whole=False)
            return
        known = self._whole.manifests
        fresh = [each for each in manifests if each.location not in known]
        for manifest, found in zip(fresh, pool.map(self._manifest, fresh), strict=True):
            known[manifest.location] = not isinstance(found, ManifestBroken)
            if isinstance(found, ManifestBroken):
                lost = Finding(
                    "manifest",
                    f"a manifest of snapshot {id} ({names}) cannot be read: {found}",
                    "Which files it names is not known, so nobody can read the rows in them.",
                    _RESTORE,
                    manifest.location,
                    manifest.added_by,
                )
                self._lost.append((id, lost))
                continue
            for part in found:
                self._parts.setdefault(part.path, part)
        self._whole.note(id, is_whole=all(known[each.location] for each in manifests))

    def _manifest(self, manifest: ManifestFile) -> list[_Part] | ManifestBroken:
        try:
            entries = read_manifest(self.files, manifest)
        except ManifestBroken as error:
            return error
        return [
            _Part(
                each.path,
                each.content,
                each.format,
                each.size,
                each.records,
                each.snapshot if each.snapshot is not None else manifest.added_by,
            )
            for each in entries
        ]

    def _way_back(self, snapshot: SnapshotId) -> str:
        """Return what else can be done when a snapshot cannot be read."""
        parent = self._snapshots[snapshot].get("parent-snapshot-id")
        while parent is not None and parent in self._snapshots:
            if self._whole.snapshot(self._snapshots[parent]):
                return (
                    f"Without one, snapshot {parent} is the newest before it that is whole: roll back to it "
                    "with any engine, then take the table as it is: esker adopt."
                )
            parent = self._snapshots[parent].get("parent-snapshot-id")
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
        size = self.files.size(part.path)
        if size is None:
            return [self._broken(part, "is not there")]
        if size != part.size:
            return [self._broken(part, f"has {size:,} bytes, and {part.size:,} were written")]
        if self.deep and (why := self._inside(part)) is not None:
            return [self._broken(part, why)]
        return []

    def _inside(self, part: _Part) -> str | None:
        try:
            with self.files.open(part.path) as stream:
                if part.format != "parquet":
                    is_kind = stream.read(4).startswith(_MAGIC.get(part.format, b""))
                    return None if is_kind else f"is no {part.format} file"
                rows = pq.ParquetFile(stream).metadata.num_rows
        except Exception as error:  # bytes that are no Parquet break a parser in any way
            return f"cannot be read: {error}"
        return None if rows == part.records else f"has {rows:,} rows, and {part.records:,} were written"

    def _broken(self, part: _Part, why: str) -> Finding:
        kind = "data" if part.content == 0 else "delete"
        meaning = (
            f"Its {part.records:,} rows cannot be read, and whoever scans it fails."
            if part.content == 0
            else "Whoever scans what it deletes rows from fails."
        )
        return Finding(
            f"{kind}_file",
            f"a {kind} file {why}{self._told_of(part.since)}",
            meaning,
            f"{_RESTORE} {'' if part.content else 'Without one, its rows must be loaded again.'}".strip(),
            part.path,
            part.since,
        )

    def _told_of(self, since: SnapshotId | None) -> str:
        summary = self._snapshots.get(since, {}).get("summary", {})
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

    @property
    def is_append(self) -> bool:
        """It took no file out, as a compaction does, whose rows stand in other files, too."""
        return not any(each.removed_files for each in self.manifests)

    def as_json(self) -> dict[str, Any]:
        return {"snapshot_id": self.id, "sequence": self.sequence, "added_rows": self.added_rows}


def lost_snapshots(files: TableFiles, folder: str, document: Mapping[str, Any]) -> Iterator[LostSnapshot]:
    """Yield the snapshots, newer than a table's metadata, whose manifest lists lie beside it.

    One whose commit failed may be among them: it looks the same.
    """
    known = {str(id) for id in snapshots_of(document)}
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
    """Yield the data files that a lost snapshot added, with their sizes."""
    for manifest in lost.manifests:
        try:
            entries = read_manifest(files, manifest)
        except ManifestBroken:
            continue
        for entry in entries:
            if entry.content == 0 and entry.snapshot in (None, lost.id):
                yield entry.path, entry.size
