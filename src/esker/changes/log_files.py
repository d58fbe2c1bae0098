"""Which files of a change log hold which changesets, by the bounds that its manifests have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from esker.engine.iceberg.manifests import FileEntry
from esker.ledger.change_columns import CHANGESET

_MOST_CHANGESETS = 1_000
"""So many changesets at most in one step: a log that nobody merged has a file for each."""


@dataclass(frozen=True)
class LogFiles:
    """The live data files of a change log."""

    files: Sequence[FileEntry]
    ids: Mapping[str, int]
    """The field ids of the log's columns."""

    def between(self, since: int, until: int) -> list[FileEntry]:
        """Return the files that may hold changes after a changeset, up to and including another."""
        column = self.ids[CHANGESET]
        bounds = ((file, file.lowest(column), file.highest(column)) for file in self.files)
        return [
            file
            for file, low, high in bounds
            if low is None or high is None or (low <= until and high > since)
        ]

    def end_of_step(self, since: int, reached: int, rows: int) -> int:
        """Return the last changeset of a step of about so many rows: a changeset is not divided."""
        if len(self._ends) < len(self.files):
            return reached  # somebody wrote files that do not tell what is in them
        last, count = since, 0
        waiting = sorted(end for end in self._ends if end[0] > since)
        for number, (high, records) in enumerate(waiting):
            if last > since and (count + records > rows or number >= _MOST_CHANGESETS):
                return last
            count += records
            last = min(high, reached)
        return reached

    @cached_property
    def _ends(self) -> list[tuple[int, int]]:
        """The last changeset of each file that tells, and its number of rows."""
        column = self.ids[CHANGESET]
        return [
            (high, file.records)
            for file in self.files
            if file.lowest(column) is not None and (high := file.highest(column)) is not None
        ]
