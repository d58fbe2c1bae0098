"""Tables to be damaged, and what is done to them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from esker.engine.iceberg.pointers import pointers_of
from esker.pipeline.api import OpenProject
from esker.pipeline.fsck import Fsck, Repair
from esker.recover.finding import Finding
from tests.folder import Folder


def catalog_of(folder: Folder) -> Path:
    return folder.path / ".esker" / "catalog.db"


def pointer(folder: Folder, table: str = "works") -> Path:
    """Return the metadata file that the embedded catalog points to."""
    with closing(sqlite3.connect(catalog_of(folder))) as catalog:
        query = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"
        [(location,)] = catalog.execute(query, (table,)).fetchall()
    return Path(location.removeprefix("file:").replace("///", "/"))


def point_to(folder: Folder, location: str, table: str = "works") -> None:
    """Let the embedded catalog point elsewhere."""
    with closing(sqlite3.connect(catalog_of(folder))) as catalog, catalog:
        change = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?"
        assert catalog.execute(change, (location, table)).rowcount == 1


def previous(file: Path) -> list[Path]:
    """Return the metadata files before one, newest first."""
    log = json.loads(file.read_text())["metadata-log"]
    return [Path(each["metadata-file"].removeprefix("file:").replace("///", "/")) for each in reversed(log)]


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


def garble(file: Path) -> None:
    file.write_text('{"format-version": 2}')


BREAK: dict[str, Callable[[Path], object]] = {
    "truncated": truncate,
    "empty": lambda file: file.write_bytes(b""),
    "garbage": garble,
    "missing": Path.unlink,
}


def findings(found: Fsck) -> list[Finding]:
    """Return everything that was found, in all tables."""
    return [finding for table in found.tables for finding in table.findings]


def checks(project: OpenProject, **keys: Any) -> list[str]:
    """Return what is damaged."""
    return [finding.check for finding in findings(project.fsck(**keys)) if finding.is_damage]


def repair(project: OpenProject) -> list[Repair]:
    """Repair all that can be repaired; return what was done."""
    done: list[Repair] = []
    while True:
        found = project.fsck()
        plan = next(project.plan_repairs(found), None)
        if plan is None:
            return done
        project.repair(found, plan)
        done.append(plan)
        assert len(done) < 10, done


def cut_metadata(project: OpenProject, catalog: str, table: str) -> tuple[Fsck, Repair]:
    """Cut off a table's metadata file, in any catalog; return what is found, and what would repair it."""
    project.engine.open_catalog(catalog)
    there = pointers_of(project.engine, catalog).read(table)
    assert there is not None
    there.files.write(there.location, there.files.read(there.location)[:-200])
    found = project.fsck()
    [broken] = [finding for each in found.tables for finding in each.findings]
    assert broken.file == there.location
    [repair] = project.plan_repairs(found)
    return found, repair
