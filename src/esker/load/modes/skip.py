"""Skip: nothing of a batch is loaded, and the position moves past it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esker.engine.iceberg.commit import Attempt
from esker.load.counts import RowCounts
from esker.load.publish import Made


@dataclass(frozen=True)
class Skip:
    """A batch that a person has rejected."""

    columns: tuple[str, int]

    def first_attempt(self) -> Attempt | None:
        return None

    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        # An empty append: a property alone would not be compared by every catalog.
        return Made(self._commit, RowCounts(), 0, is_change=False)

    def release(self) -> None:
        pass

    def _commit(self, attempt: Attempt, summary: Mapping[str, str]) -> tuple[int, int]:
        return attempt.touch(summary)
