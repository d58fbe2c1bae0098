"""What is wrong with a table, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from esker.engine.iceberg.file_metrics import Correction
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.pointers import Pointer
from esker.engine.iceberg.table import TableId


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    check: str
    """What was looked at: metadata, manifest_list, manifest, data_file, delete_file, bounds, ledger, outbox,
    log."""
    what: str
    meaning: str
    remedy: str
    file: str | None = None
    snapshot: SnapshotId | None = None
    """Since this snapshot the table counts on it."""
    is_damage: bool = True
    """False for what the next run mends by itself."""

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "damage": self.is_damage,
            "what": self.what,
            "file": self.file,
            "snapshot_id": self.snapshot,
            "meaning": self.meaning,
            "remedy": self.remedy,
        }


@dataclass(frozen=True)
class Checked:
    """How much was looked at."""

    snapshots: int = 0
    manifests: int = 0
    data_files: int = 0
    delete_files: int = 0


@dataclass(frozen=True)
class Examined:
    """A table after a look at it. Nothing was changed."""

    table: TableId
    pointer: Pointer | None = None
    """None when the catalog has no such table, or does not say."""
    document: dict[str, Any] | None = field(default=None, repr=False)
    """The metadata; None when it cannot be read."""
    findings: tuple[Finding, ...] = ()
    checked: Checked = field(default_factory=Checked)
    corrections: tuple[Correction, ...] = field(default=(), repr=False)
    """What is right where manifests say something wrong of data files."""

    @property
    def is_there(self) -> bool:
        return self.pointer is not None or bool(self.findings)

    @property
    def is_damaged(self) -> bool:
        return any(finding.is_damage for finding in self.findings)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties, as far as they are known."""
        found: dict[str, str] = (self.document or {}).get("properties", {})
        return found

    def as_json(self) -> dict[str, Any]:
        current = (self.document or {}).get("current-snapshot-id")
        return {
            "table": str(self.table),
            "catalog": self.table.catalog,
            "status": "damaged" if self.is_damaged else "clean",
            "metadata": self.pointer.location if self.pointer is not None else None,
            "snapshot_id": None if current in (None, -1) else current,
            "checked": vars(self.checked),
            "findings": [finding.as_json() for finding in self.findings],
        }
