"""Go back to the newest metadata file that is whole, by one compare-and-swap on the catalog's pointer.

What is restored is written as the table's next metadata file, and not pointed to where it lies: a writer that
still holds the old file would take it for the state that it knows. In the same file the head moves behind the
change log, so no number that consumers have seen is given to another change. No file is ever deleted. A stop
half way leaves the old pointer and a file that nobody refers to, or a table that is repaired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.pointers import NextFile, Pointer, PointerMoved, pointers_of
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import RepairOutdated
from esker.ledger.entry import head_property, read_head
from esker.ledger.logged import forget, logged_in, skipped
from esker.ledger.outbox import read_outbox
from esker.ledger.side_table import LOG, SideTable
from esker.ledger.stored_json import as_document
from esker.recover.bookkeeping import Bookkeeping
from esker.recover.finding import Examined
from esker.recover.previous import Previous, previous_good
from esker.recover.walk import LostSnapshot, lost_snapshots

_REPAIRED = "esker.repaired"
"""Table property that says what the last repair did."""


@dataclass(frozen=True)
class Restore:
    """What going back to an earlier metadata file would do."""

    table: TableId
    pointer: Pointer
    previous: Previous
    lost: tuple[LostSnapshot, ...]
    changesets: tuple[int, int] | None = None
    """The first and last changeset that the change log tells of and the table will not have."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """What changes in the table's properties, beside a note of the repair."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "table": str(self.table),
            "repair": "restore",
            "from": self.pointer.location,
            "to": self.previous.location,
            "commits_lost": self.previous.versions_lost,
            "snapshots_lost": [each.as_json() for each in self.lost],
            "changesets_lost": list(self.changesets) if self.changesets else None,
            "passed_over": list(self.previous.passed_over),
            "notes": list(self.notes),
        }

    def apply(self, engine: Engine) -> None:
        """Do it, or raise RepairOutdated when the catalog points elsewhere by now, or RepairRefused."""
        following = NextFile(self.previous.folder, self.previous.newest_version + 1, self._content())
        try:
            pointers_of(engine, self.table.catalog).replace(self.table.name, self.pointer, following)
        except PointerMoved:
            raise RepairOutdated(str(self.table)) from None
        finally:
            engine.handles.forget(self.table.sql)
            forget(self.previous.document["table-uuid"])

    def _content(self) -> bytes:
        """Return the file: what the earlier one says, as it says it, and that it was the one before."""
        old = self.previous.document
        now = int(datetime.now(UTC).timestamp() * 1000)
        before = {"metadata-file": self.previous.location, "timestamp-ms": old["last-updated-ms"]}
        properties = {**old.get("properties", {}), **self.properties}
        properties |= _note(self.pointer.location, self.previous.location)
        return json.dumps(
            old
            | {
                "properties": properties,
                "metadata-log": [*old.get("metadata-log", ()), before],
                "last-updated-ms": max(now, old["last-updated-ms"]),
            }
        ).encode()


@dataclass(frozen=True)
class Rewrite:
    """A commit that changes nothing, so that the server writes the metadata file anew."""

    table: TableId
    pointer: Pointer
    notes: tuple[str, ...] = ("the server has the metadata: it is written anew, and nothing is lost",)

    def as_json(self) -> dict[str, Any]:
        return {
            "table": str(self.table),
            "repair": "rewrite",
            "from": self.pointer.location,
            "notes": list(self.notes),
        }

    def apply(self, engine: Engine) -> None:
        """Do it, or raise RepairOutdated when somebody committed: then there is a new file already."""
        attempt = Attempt(engine, self.table)
        if attempt.version != self.pointer.location:
            raise RepairOutdated(str(self.table))
        try:
            attempt.set(_note(self.pointer.location, self.pointer.location))
            attempt.swap()
        except SwapFailed:
            raise RepairOutdated(str(self.table)) from None


def plan_restore(engine: Engine, examined: Examined) -> Restore:
    """Return what going back would do to a table. Raises NothingToRestore."""
    pointer = examined.pointer
    assert pointer is not None, "the catalog has the table"
    previous = previous_good(engine, examined.table, pointer)
    lost = tuple(lost_snapshots(pointer.files, previous.folder, previous.document))
    return Restore(examined.table, pointer, previous, lost)


def behind_log(
    engine: Engine, restore: Restore, beside: Mapping[str, Examined], log: SideTable | None, told: int = 0
) -> Restore:
    """Return the repair of a table with its head behind all that the tables beside it hold.

    `told` is how many changesets behind the head consumers may have seen in a log that cannot be read.
    """
    own: dict[str, str] = restore.previous.document.get("properties", {})
    logged = Bookkeeping(engine, restore.table, own, beside).logged()
    head = read_head(own)
    if head is None and told:
        restore, told = replace(restore, notes=(*restore.notes, _FIRST)), 0
    published = head.changeset if head else 0
    last = max(*logged.values(), published + told, 0)
    if last <= published:
        return replace(restore, notes=(*restore.notes, _AGAIN))
    notes = (*restore.notes, _AGAIN)
    if told or (log is not None and logged.get(log.id.name, 0) > published):
        notes += (_GAP,)
    found = replace(restore, changesets=(published + 1, last), notes=notes)
    if head is None:
        return found  # there is no snapshot that it could name: numbers go on with a commit afterwards
    properties = head_property(replace(head, changeset=last + 1))
    # The table may have gone back to a time before it knew its log.
    return replace(found, properties=properties | (log.registration() if log is not None else {}))


def with_gap(restore: Restore, table: Examined) -> Restore:
    """Return the repair of a change log that says which changesets it lacks then.

    Those that its table's outbox still holds are appended by the next run, and are none of them.
    """
    own: dict[str, str] = restore.previous.document.get("properties", {})
    have = logged_in(own)
    head = read_head(table.properties)
    waiting = [
        entry for entry in read_outbox(table.properties) if LOG in entry.owed and entry.changeset > have
    ]
    upto = waiting[0].after if waiting else (head.changeset if head else 0)
    if upto <= have:
        return replace(
            restore, notes=(*restore.notes, "the next run appends what is missing: nothing is lost")
        )
    return replace(
        restore, changesets=(have + 1, upto), properties=skipped(own, upto), notes=(*restore.notes, _GAP)
    )


_AGAIN = "the ledger goes back with the table: the next run loads again what is lost here"
_FIRST = "the change log cannot be read: if it is numbered from 1 again, consumers must read the table anew"
_GAP = "the change log gets a gap there: consumers must read the table anew"


def _note(broken: str, restored: str) -> dict[str, str]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {_REPAIRED: as_document({"at": at, "broken": broken, "restored": restored})}
