"""Which snapshots are whole: their manifest lists and manifests can be read. Data files are not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from esker.engine.iceberg.manifest_files import (
    ManifestBroken,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table_files import TableFiles

AT_ONCE = 16
"""So many files are read at a time."""


@dataclass
class Whole:
    """What is known of a table's snapshots and manifests. Each file is read once, whoever asks."""

    files: TableFiles
    manifests: dict[str, bool] = field(default_factory=dict)
    """Can they be read? By location."""
    _snapshots: dict[SnapshotId, bool] = field(default_factory=dict)

    def current(self, document: Mapping[str, Any]) -> bool:
        """Tell whether the current snapshot of a table's metadata is whole; also when there is none."""
        current = document.get("current-snapshot-id")
        if current in (None, -1):
            return True
        snapshot = snapshots_of(document).get(current)
        return snapshot is not None and self.snapshot(snapshot)

    def snapshot(self, snapshot: Mapping[str, Any]) -> bool:
        """Tell whether a snapshot is whole."""
        id = snapshot["snapshot-id"]
        if id not in self._snapshots:
            self._snapshots[id] = self._look_at(snapshot)
        return self._snapshots[id]

    def note(self, snapshot: SnapshotId, *, is_whole: bool) -> None:
        """Take note of what somebody else has seen of a snapshot."""
        self._snapshots[snapshot] = is_whole

    def _look_at(self, snapshot: Mapping[str, Any]) -> bool:
        try:
            manifests = manifests_of(self.files, snapshot)
        except ManifestBroken:
            return False
        if not all(self.manifests.get(each.location, True) for each in manifests):
            return False
        unread = [each for each in manifests if each.location not in self.manifests]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="esker-fsck") as pool:
            # In portions: with the first manifest that is broken, the answer is known.
            for start in range(0, len(unread), AT_ONCE):
                some = unread[start : start + AT_ONCE]
                can_be_read = list(pool.map(self._can_be_read, some))
                self.manifests |= zip((each.location for each in some), can_be_read, strict=True)
                if not all(can_be_read):
                    return False
        return True

    def _can_be_read(self, manifest: ManifestFile) -> bool:
        try:
            read_manifest(self.files, manifest)
        except ManifestBroken:
            return False
        return True


def manifests_of(files: TableFiles, snapshot: Mapping[str, Any]) -> tuple[ManifestFile, ...]:
    """Return the manifests of a snapshot, or raise ManifestBroken when its list cannot be read."""
    if "manifest-list" in snapshot:
        return read_manifest_list(files, snapshot["manifest-list"]).manifests
    # Tables of the first days of format version 1 have no lists.
    id = snapshot["snapshot-id"]
    return tuple(ManifestFile(each, None, 0, 0, id, 0) for each in snapshot.get("manifests", ()))


def snapshots_of(document: Mapping[str, Any]) -> dict[Any, Mapping[str, Any]]:
    """Return the snapshots of a table's metadata, by id."""
    return {each["snapshot-id"]: each for each in document.get("snapshots", ())}
