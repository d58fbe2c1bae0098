"""Which changes of a table can be read since a point, and whether they continue what was read before.

Everything that follows a table asks here: a source with `read: changes`, deliveries and their enrichments,
`project.changes` and `to_spark()`. A change log has gaps, forgets old changes, and may be restored together
with its table, so that numbers of changesets are issued again. No reader passes over one of these silently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from esker.errors import (
    ChangesDiverged,
    ChangesForgotten,
    ChangesMissing,
    NoChangeLog,
    UnknownPoint,
)
from esker.ledger.point import Point

NOT_CONTINUED = (ChangesDiverged, ChangesForgotten, ChangesMissing)
"""Errors after which a reader has to read the whole table once."""
UNREADABLE = (*NOT_CONTINUED, NoChangeLog, UnknownPoint)
"""Errors of a range of changes that cannot be read."""
RECREATED = "The table was dropped and created again since."
OF_LOG = (
    "The position is one in a change log, and the table has none any more: its pipeline's mode was another "
    "one then, or its `changes:` was."
)
_OF_SNAPSHOTS = (
    "The position is a snapshot of the table, which has a change log now: its pipeline's mode was another "
    "one then, or its `changes:` was."
)
_GAP = (
    "The change log has a gap there: the changes were published while it was switched off or lost, or before "
    "the table or the log was restored."
)


@dataclass(frozen=True)
class LogPosition:
    """How far a reader has read a table's changes."""

    table: str
    """The table's uuid: another table of that name has other changesets."""
    changeset: int
    """The last one that was read; 0 before the first."""
    run: str | None = None
    """The run that published it. None where the log does not tell, and in positions of earlier versions."""
    snapshot: int | None = None
    """The log's snapshot that ends with the changeset, where one is known…"""
    sequence: int = 0
    """…and its sequence number."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a part of a source's position."""
        document: dict[str, Any] = {"table": self.table, "changeset": self.changeset}
        if self.run is not None:
            document["run"] = self.run
        if self.snapshot is not None:
            document["log"] = [self.snapshot, self.sequence]
        return document

    @classmethod
    def of_log(cls, table: str, document: Mapping[str, Any]) -> LogPosition:
        """Return a stored position in a table's log; raise ChangesDiverged for one of its snapshots."""
        if "changeset" not in document:
            raise ChangesDiverged(table, None, _OF_SNAPSHOTS)
        return cls.from_json(document)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LogPosition:
        """Return a stored position; one of an earlier version has a table and a changeset only."""
        snapshot, sequence = document.get("log", (None, 0))
        return cls(document["table"], document["changeset"], document.get("run"), snapshot, sequence)


class ReadableLog(ABC):
    """A table with its change log, as one reader has opened them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name."""

    @property
    @abstractmethod
    def uuid(self) -> str:
        """The table's uuid."""

    @property
    @abstractmethod
    def first(self) -> int:
        """The oldest changeset that can be read."""

    @property
    @abstractmethod
    def reached(self) -> int:
        """The newest changeset that can be read."""

    @property
    @abstractmethod
    def published(self) -> int:
        """The newest changeset of the table, whether the log has it or not."""

    @property
    @abstractmethod
    def gaps(self) -> Iterable[tuple[int, int]]:
        """The first and last changeset of each gap that the log knows of."""

    @abstractmethod
    def changeset_at(self, point: Point) -> int:
        """Return the last changeset at a point, or raise UnknownPoint."""

    @abstractmethod
    def run_of(self, changeset: int) -> str | None:
        """Return the run that published a changeset; None when the log does not tell."""

    @abstractmethod
    def snapshot_of(self, changeset: int) -> tuple[int, int] | None:
        """Return the log's snapshot that ends with a changeset, and its sequence number."""

    @abstractmethod
    def descends(self, snapshot: int, sequence: int) -> bool | None:
        """Tell whether the log descends from one of its snapshots; None when nothing tells any more."""

    def position(self, changeset: int) -> LogPosition:
        """Return the position of a reader that has read all changes up to a changeset."""
        snapshot, sequence = self.snapshot_of(changeset) or (None, 0)
        return LogPosition(self.uuid, changeset, self.run_of(changeset), snapshot, sequence)

    def between(self, since: Point | LogPosition | None, until: Point | None) -> tuple[int, int]:
        """Return the changesets between which a range lies.

        Raises UnknownPoint, ChangesForgotten for what is no longer there, ChangesMissing for what never
        got into the log, and ChangesDiverged for a position in another history.
        """
        if isinstance(since, LogPosition):
            if until is None:
                self.check(since)  # also that the table has no changes that the log lacks
            self.check_same(since)
            since = since.changeset
        first = self.changeset_at(since) if since is not None else self.first - 1
        if first > self.reached:
            # An empty range would lead its reader to changes that are others than those it has read.
            raise UnknownPoint.ahead(str(since), self.name, self.reached)
        last = min(self.changeset_at(until), self.reached) if until is not None else self.reached
        self.check_range(first, last)
        return first, last

    def check_range(self, first: int, last: int) -> None:
        """Raise ChangesForgotten or ChangesMissing unless all changes of a range are there."""
        if first < self.first - 1 or last < self.first - 1:
            raise ChangesForgotten(self.name, min(first + 1, last), self.first)
        for begin, end in self.gaps:
            if begin <= end and first < end and begin <= last:
                raise ChangesMissing(self.name, begin, end, _GAP)

    def check(self, position: LogPosition) -> None:
        """Raise unless all changes after a position are there, and continue those that were read.

        Raises ChangesDiverged, ChangesForgotten or ChangesMissing.
        """
        self.check_same(position)
        self.check_range(position.changeset, self.reached)
        if max(position.changeset, self.reached) < self.published:
            # The log is off, or a repair has moved the numbers: it will say so with its next changeset.
            raise ChangesMissing(self.name, self.reached + 1, self.published, _GAP)

    def check_same(self, position: LogPosition) -> None:
        """Raise ChangesDiverged unless the changes up to a position are those that were read."""
        number = position.changeset
        if position.table != self.uuid:
            self._diverged(number, RECREATED)
        if number > max(self.reached, self.published):
            self._diverged(
                number,
                f"The log ends with changeset {self.reached}: the table was restored to an earlier state.",
            )
        if position.snapshot is not None and self.descends(position.snapshot, position.sequence) is False:
            self._diverged(number, "The change log was restored or rolled back since.")
        run = self.run_of(number) if position.run is not None else None
        if run is not None and run != position.run:
            self._diverged(
                number,
                f"Changeset {number} is of run {run}, and the one that was read was of run {position.run}: "
                "the number was issued again after a restore.",
            )

    def _diverged(self, changeset: int, why: str) -> None:
        raise ChangesDiverged(self.name, changeset, why)
