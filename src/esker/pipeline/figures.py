"""The quality of a table over time: what its checks found, at a point and beside another. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from esker.engine.iceberg.table_metadata import Snapshot
from esker.errors import NoQuality, UnknownPoint

_DAY = timedelta(days=1)
Moment = int | datetime
"""A changeset, or a time."""


@dataclass(frozen=True)
class Figure:
    """One metric: its newest value at a point, and at an earlier one."""

    metric: str
    kind: str
    value: float | None
    passed: bool | None
    measured_at: datetime
    snapshot: int
    changeset: int
    earlier: float | None = None

    @property
    def change(self) -> float | None:
        if self.value is None or self.earlier is None:
            return None
        return self.value - self.earlier

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "kind": self.kind,
            "value": self.value,
            "passed": self.passed,
            "measured_at": self.measured_at.isoformat(),
            "snapshot": self.snapshot,
            "changeset": self.changeset,
            "earlier": self.earlier,
            "change": self.change,
        }


Stored = Callable[[Moment | None], Iterable[Figure]]
"""Returns the newest figure of each metric that a quality history holds at a point."""


def figures(
    table: str,
    line: Sequence[Snapshot],
    stored: Stored | None,
    as_of: str | None,
    beside: str | None,
    *,
    held: bool,
) -> list[Figure]:
    """Return what the checks of a table found last, at a point and beside another one.

    `line` are the table's snapshots, oldest first; `stored` is None where there is no quality history. Points
    are changesets, or times (UTC unless they say). With `held`, figures of batches that were held. Raises
    NoQuality or UnknownPoint.
    """
    at, before = _point(as_of), _point(beside)
    if stored is None and not line:
        raise NoQuality(table)
    counted = Counted([] if held else line)  # no held batch is among its snapshots
    now = _newest(stored, counted, at)
    then = _newest(stored, counted, before) if beside else {}
    order = ("table", "audit", "rule")
    found = sorted(now.values(), key=lambda each: (order.index(each.kind), each.metric))
    return [
        replace(each, earlier=then[each.kind, each.metric].value)
        if (each.kind, each.metric) in then
        else each
        for each in found
    ]


_Figures = dict[tuple[str, str], Figure]


def _newest(stored: Stored | None, counted: Counted, point: Moment | None) -> _Figures:
    found = {(each.kind, each.metric): each for each in counted.at(point)}
    for each in stored(point) if stored is not None else ():
        known = found.get((each.kind, each.metric))
        # A history stays where it is when a pipeline's contract goes: what is newer counts.
        if known is None or known.changeset <= each.changeset:
            found[each.kind, each.metric] = each
    return found


def _point(text: str | None) -> Moment | None:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnknownPoint(text, "write a changeset, or a time: 2026-11-03 or 2026-11-03T14:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Counted:
    """How many rows a table had, as the summaries of its snapshots tell. Nothing is written for it."""

    line: Sequence[Snapshot]
    """The table's snapshots that are not expired, oldest first."""

    def at(self, point: Moment | None) -> Iterator[Figure]:
        """Yield the figures at a changeset or a time, or the newest ones."""
        place = None
        for index, (snapshot, changeset) in enumerate(zip(self.line, self._changesets, strict=True)):
            is_there = changeset <= point if isinstance(point, int) else True
            if isinstance(point, datetime):
                is_there = snapshot.committed_at <= point
            place = index if is_there else place
        if place is None:
            return
        snapshot, changeset = self.line[place], self._changesets[place]
        rows = _rows(snapshot)
        yield _figure("record_count", rows, snapshot, changeset)
        day_ago = [each for each in self.line if each.committed_at <= snapshot.committed_at - _DAY]
        before = _rows(day_ago[-1]) if day_ago else None
        if rows is not None and before is not None:
            yield _figure("daily_growth", rows - before, snapshot, changeset)

    @cached_property
    def _changesets(self) -> list[int]:
        """The last changeset up to each snapshot."""
        told = [each.summary.get("esker.changeset") for each in self.line]
        first = next((int(number) for number in told if number is not None), 0)
        is_cut = bool(self.line) and self.line[0].parent is not None
        reached = max(first - 1, 0) if is_cut else 0
        found = []
        for number in told:
            reached = int(number) if number is not None else reached
            found.append(reached)
        return found


def _figure(metric: str, value: int | None, snapshot: Snapshot, changeset: int) -> Figure:
    number = None if value is None else float(value)
    return Figure(metric, "table", number, None, snapshot.committed_at, snapshot.id, changeset)


def _rows(snapshot: Snapshot) -> int | None:
    """Return how many rows a snapshot has; None where it does not say, or rows were deleted by value."""
    total = snapshot.summary.get("total-records")
    if total is None or int(snapshot.summary.get("total-equality-deletes", "0")):
        return None
    return int(total) - int(snapshot.summary.get("total-position-deletes", "0"))
