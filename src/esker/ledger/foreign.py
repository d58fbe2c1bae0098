"""What other engines have written into a table: rows whose hash may not be theirs.

An UPDATE by another engine copies `_esker_hash` from the old row, so the hash of a row in a file of theirs
says nothing. The table's property `esker.foreign` names the commits of others by ranges of sequence
numbers, written by the very publish that takes note of them: snapshots expire, the property stays. What
stands between the table's head and its current snapshot is not Esker's, because every publish moves the
head. A compaction (operation `replace`) carries rows over as they are: its files are only in doubt when
it rewrote one that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from esker.engine.iceberg.table_metadata import Snapshot
from esker.engine.iceberg.view import View
from esker.ledger.entry import read_head
from esker.ledger.owed import as_pairs
from esker.ledger.stored_json import as_text, read_property
from esker.project.reserved import HASH_COLUMN

if TYPE_CHECKING:
    from esker.engine.iceberg.manifests import FileEntry

FOREIGN = "esker.foreign"
_LIMIT = 1_000
_NAMED = 3

Range = tuple[int, int]


@dataclass(frozen=True)
class Foreign:
    """The commits of others, by their sequence numbers, and those that no publish has seen yet."""

    ranges: tuple[Range, ...] = ()
    new: tuple[Snapshot, ...] = ()
    """Snapshots that changed rows since the last publish, oldest first."""
    is_whole: bool = True
    """False when some of the new ones have been expired, and nothing more is known of them."""

    @property
    def is_known(self) -> bool:
        """Others have changed nothing that no publish has taken note of."""
        return not self.new and self.is_whole

    def doubts(self, file: FileEntry) -> bool:
        """Tell whether the hashes in a data file may be wrong."""
        return any(first <= file.added <= last for first, last in self.ranges)

    def doubtful(self, files: Iterable[FileEntry]) -> list[FileEntry]:
        """Return the data files whose hashes may be wrong."""
        return [file for file in files if self.doubts(file)] if self.ranges else []

    def note(self, consequence: str) -> str | None:
        """Return what a person should know of the new ones, if there are any, and what follows from it."""
        if self.is_known:
            return None
        named = [_described(snapshot) for snapshot in self.new[:_NAMED]]
        if len(self.new) > _NAMED:
            named.append(f"{len(self.new) - _NAMED} more")
        if not self.is_whole:
            named.append("others, which have been expired")
        return f"others changed the table since Esker's last publish ({'; '.join(named)}){consequence}"


def foreign_ranges(properties: Mapping[str, str]) -> tuple[Range, ...]:
    """Return the commits of others that a table's properties name, by their sequence numbers."""
    return read_property(properties, FOREIGN, as_pairs) or ()


def foreign(view: View) -> Foreign:
    """Return what others have written into a table, as far as it may still be there."""
    known = foreign_ranges(view.properties)
    head = read_head(view.properties)
    if head is None:
        return all_foreign(view)
    if view.current == head.snapshot:
        return Foreign(known)
    history = view.history(head.snapshot, head.sequence)
    found = Foreign(known)
    if history.descends is not True:
        oldest = history.newer[0].sequence if history.newer else view.sequence + 1
        found = Foreign((*known, (head.sequence + 1, oldest - 1)))
    new = []
    for snapshot in history.newer:
        if snapshot.operation != "replace":
            new.append(snapshot)
        elif not _carries_doubt(view, snapshot, found):
            continue
        found = Foreign((*found.ranges, (snapshot.sequence, snapshot.sequence)))
    return Foreign(_merged(found.ranges), tuple(new), history.descends is True)


def all_foreign(view: View) -> Foreign:
    """Return that every hash in a table is in doubt, as after a rollback: old files may be there again."""
    return Foreign(((0, view.sequence),) if view.has_values_in(HASH_COLUMN) else ())


def foreign_property(view: View, found: Foreign) -> dict[str, str]:
    """Return the property that a publish on what was read leaves in the table, if it needs another one."""
    ranges = found.ranges
    if ranges:
        live = {file.added for file in view.files.data}
        ranges = tuple(r for r in ranges if any(r[0] <= added <= r[1] for added in live))
    text = as_text(shortened(ranges))
    return {FOREIGN: text} if text != view.properties.get(FOREIGN, "[]") else {}


def shortened(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return ranges that fit into the property: those nearest to each other become one.

    Files between two commits of others are then in doubt too: that costs time, and loses nothing.
    """
    while len(as_text(ranges)) > _LIMIT:
        gaps = [after[0] - before[1] for before, after in pairwise(ranges)]
        at = gaps.index(min(gaps))
        ranges = (*ranges[:at], (ranges[at][0], ranges[at + 1][1]), *ranges[at + 2 :])
    return ranges


def counted(summary: Mapping[str, str], name: str) -> int:
    """Return a number from a snapshot's summary; 0 where it says nothing."""
    text = summary.get(name, "0")
    return int(text) if text.isdecimal() else 0


def _carries_doubt(view: View, snapshot: Snapshot, known: Foreign) -> bool:
    if not known.ranges:
        return False
    removed = view.removed_data(snapshot)
    return removed is None or bool(known.doubtful(removed))


def _merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for first, last in sorted(r for r in ranges if r[0] <= r[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _described(snapshot: Snapshot) -> str:
    parts = [
        f"{counted(snapshot.summary, 'added-records'):,} rows in "
        f"{counted(snapshot.summary, 'added-data-files'):,} files added"
    ]
    gone = counted(snapshot.summary, "deleted-records") + counted(snapshot.summary, "added-position-deletes")
    if gone:
        parts.append(f"{gone:,} deleted")
    elif counted(snapshot.summary, "added-equality-deletes"):
        parts.append("rows deleted by value")
    return f"snapshot {snapshot.id}, {snapshot.operation}: {', '.join(parts)}"
