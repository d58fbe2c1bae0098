"""What Esker wrote down before a publish (loaded files, large positions) is taken in again after a repair.

Such rows count only when a ledger names them, so those of a commit that failed do no harm. Their files lie in
the store, whatever became of the metadata: the repair notes them in the table, and a commit appends them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import RepairOutdated
from esker.ledger.side_table import as_text
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


def with_records(restore: Restore) -> Restore:
    """Return the repair of a table of records with a note of the files that are to be appended again."""
    files = [place for lost in restore.lost for place in added_files(restore.pointer.files, lost)]
    if not files:
        return restore
    properties = {**restore.properties, _PENDING: as_text(files)}
    return replace(restore, properties=properties, notes=(*restore.notes, "then its rows are taken in again"))


def pending(examined: Examined) -> Reappend | None:
    """Return what is still to be appended to a table of records."""
    places = json.loads(examined.properties.get(_PENDING, "[]"))
    files = tuple((str(location), int(size)) for location, size in places)
    return Reappend(examined.table, files) if files else None


def with_pending(examined: Examined) -> Examined:
    """Return a table together with what a repair has left out."""
    if pending(examined) is None:
        return examined
    found = Finding(
        RECORDS,
        "what was written down there since is not taken in again yet: a repair was not finished",
        "Runs that need it stop.",
        f"esker fsck {examined.table} --repair",
    )
    return replace(examined, findings=(*examined.findings, found))
