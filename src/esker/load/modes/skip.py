"""Skip: nothing of a batch is loaded, and the position moves past it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.load.counts import RowCounts
from esker.load.publish import Change, Made


@dataclass(frozen=True)
class Skip(Change):
    """A batch that a person has rejected."""

    table: tuple[str, int]

    @property
    def columns(self) -> tuple[str, int]:
        return self.table

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        # An empty append: a property alone would not be compared by every catalog.
        return Made(self._commit, RowCounts(), 0, is_change=False)

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.touch(summary)
