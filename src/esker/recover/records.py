"""What Esker appended to its own tables is taken in again after a repair.

Rows of loaded files and of large positions count only when a ledger names them, so those of a commit that
failed do no harm. Files of quarantine, deletes and quality are appended only after a publish has named them:
a commit that failed and the one after it append the same ones. All lie in the store, whatever became of the
metadata: the repair notes them in the table, and a commit appends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import RepairOutdated
from esker.ledger.logged import logged_in
from esker.ledger.outbox import read_outbox
from esker.ledger.side_table import SIDES, SideTable, as_places, as_text
from esker.ledger.stored_json import read_property
from esker.recover.finding import Examined, Finding
from esker.recover.repair import Restore
from esker.recover.walk import added_files

_PENDING = "esker.pending"
RECORDS = "records"
"""The check that `--repair` mends by appending files."""


@dataclass(frozen=True)
class Reappend:
    """A commit that appends what a repair has left out."""

    table: TableId
    files: tuple[tuple[str, int], ...]
    """Locations and sizes."""
    notes: tuple[str, ...] = ("what was written down there is taken in again: nothing is lost",)

    def as_json(self) -> dict[str, Any]:
        return {
            "table": str(self.table),
            "repair": "append",
            "files": [location for location, _ in self.files],
            "notes": list(self.notes),
        }

    def apply(self, engine: Engine) -> None:
        """Do it, or raise RepairOutdated when somebody committed meanwhile."""
        attempt = Attempt(engine, self.table)
        try:
            if attempt.properties.get(_PENDING) != as_text(self.files):
                raise RepairOutdated(str(self.table))
            attempt.append(attempt.adopt(self.files), {"esker.repaired": "records"})
            attempt.set({_PENDING: "[]"})
            attempt.swap()
        except SwapFailed:
            raise RepairOutdated(str(self.table)) from None


def with_records(restore: Restore, beside: Examined) -> Restore:
    """Return the repair of a table of Esker's own with a note of the files that are to be appended again.

    Not those that the outbox of the table that it stands `beside` still holds: the next run appends them.
    """
    files, notes = restore.pointer.files, restore.notes
    appended = {place: None for lost in restore.lost if lost.is_append for place in added_files(files, lost)}
    waiting = set(_waiting(restore, beside))
    missing = [place for place in appended if place[0].rpartition("/")[2] not in waiting]
    found = [(location, size) for location, size in missing if files.size(location) == size]
    if len(found) < len(missing):
        gone = next(location for location, size in missing if (location, size) not in found)
        notes += (f"{len(missing) - len(found)} of its files are gone, and their rows are lost: {gone}",)
    if not found:
        return replace(restore, notes=notes)
    properties = {**restore.properties, _PENDING: as_text(found)}
    return replace(restore, properties=properties, notes=(*notes, "then its rows are taken in again"))


def _waiting(restore: Restore, beside: Examined) -> Iterator[str]:
    """Yield the names of the files that an outbox still holds for a table that is to be restored."""
    have = logged_in(restore.previous.document.get("properties", {}))
    for name in SIDES:
        side = SideTable.registered(beside.properties, name, restore.table.catalog)
        if side is None or side.id != restore.table:
            continue
        for entry in read_outbox(beside.properties):
            if name in entry.owed and entry.changeset > have:
                with suppress(FileNotFoundError):  # of a list that is gone, fsck tells
                    places = side.places(restore.pointer.files.store, entry.owed[name])
                    yield from (place for place, _ in places)


def pending(examined: Examined) -> Reappend | None:
    """Return what is still to be appended to a table of records."""
    files = read_property(examined.properties, _PENDING, as_places)
    return Reappend(examined.table, files) if files else None


def with_pending(examined: Examined) -> Examined:
    """Return a table together with what a repair has left out."""
    if pending(examined) is None:
        return examined
    found = Finding(
        RECORDS,
        "what was written down there since is not taken in again yet: a repair was not finished",
        "Until then it is missing there. Runs that need the record of loaded files stop.",
        f"esker fsck {examined.table} --repair",
    )
    return replace(examined, findings=(*examined.findings, found))
