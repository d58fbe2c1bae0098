"""How much is read of a table that is damaged: each manifest once, however many are lost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from esker.engine.iceberg.pointers import Pointer
from esker.engine.iceberg.table import TableId
from esker.engine.iceberg.table_files import TableFiles
from esker.recover.previous import previous_good
from esker.recover.walk import Walk
from tests.load.works import WORKS, Make
from tests.recover.damage import pointer, truncate

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class CountingFiles(TableFiles):
    """The files of tables, and how often each was read."""

    reads: Counter[str] = field(default_factory=Counter)

    @classmethod
    def like(cls, files: TableFiles) -> CountingFiles:
        return cls(files.store)

    def read(self, location: str) -> bytes:
        self.reads[location] += 1
        return super().read(location)

    @property
    def often(self) -> dict[str, int]:
        """Lists and manifests that were read more than once."""
        return {name: count for name, count in self.reads.items() if count > 1 and name.endswith(".avro")}


def test_no_manifest_is_read_twice(make: Make) -> None:
    """Neither for the way back from lost manifests, nor for the newest metadata file that can be used."""
    works = make(order_by="at")
    for number in range(6):
        works.load([{"id": number, "at": 1, "name": f"stone {number}"}])
    snapshots = works.snapshots()
    works.sql(f"ALTER TABLE {WORKS} CREATE TAG fourth AS OF VERSION {snapshots[3]}")
    for snapshot in snapshots[2:4]:
        rows = works.sql(f"SELECT path FROM {WORKS}.manifests WHERE added_snapshot_id = {snapshot}")
        for row in rows:
            Path(row.path.removeprefix("file:").replace("///", "/")).unlink()
    current = pointer(works.folder)
    engine = works.project.engine
    own = TableFiles.of_catalog(engine, "lake")

    walk = Walk(files := CountingFiles.like(own), json.loads(current.read_text()))
    walk.all()
    assert [finding.check for finding in walk.findings if finding.is_damage] == ["manifest", "manifest"]
    assert all(f"snapshot {snapshots[1]} is the newest" in finding.remedy for finding in walk.findings)
    assert files.often == {}

    truncate(current)
    files = CountingFiles.like(own)
    found = previous_good(engine, TableId("lake", "shop.works"), Pointer(f"file:{current}", files))
    assert found.document["current-snapshot-id"] == snapshots[1]
    assert len(found.passed_over) >= 4
    assert files.often == {}
