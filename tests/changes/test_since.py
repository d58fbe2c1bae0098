"""Which changes can be read since a point, and whether they continue what was read. No Spark here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from esker.changes.since import LogPosition, ReadableLog
from esker.errors import ChangesDiverged, ChangesForgotten, ChangesMissing, UnknownPoint
from esker.ledger.point import Point


@dataclass(frozen=True)
class Log(ReadableLog):
    """A log as plain values."""

    name: str = "shop.orders"
    uuid: str = "one"
    first: int = 1
    reached: int = 9
    published: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    runs: Mapping[int, str] = field(default_factory=dict)
    line: tuple[int, ...] = (10, 20)
    """Its snapshots; nothing is known of those before the first."""

    def changeset_at(self, point: Point) -> int:
        assert isinstance(point, int)
        return point

    def run_of(self, changeset: int) -> str | None:
        return self.runs.get(changeset)

    def snapshot_of(self, changeset: int) -> tuple[int, int] | None:
        return (self.line[-1], len(self.line)) if changeset == self.reached else None

    def descends(self, snapshot: int, sequence: int) -> bool | None:
        return True if snapshot in self.line else None if sequence < 1 else False


def test_a_reader_goes_on_from_where_it_was() -> None:
    log = Log(runs={9: "a"})
    position = log.position(9)
    assert position == LogPosition("one", 9, "a", 20, 2)
    assert LogPosition.from_json(position.as_json()) == position
    log.check(position)
    Log(reached=12, line=(10, 20, 30), runs={9: "a", 12: "b"}).check(position)


def test_a_position_of_a_table_that_had_no_log() -> None:
    """Before its pipeline was changed, its snapshots told what was added."""
    with pytest.raises(ChangesDiverged, match="do not continue") as caught:
        LogPosition.of_log("shop.orders", {"table": "one", "snapshot": 7})
    assert "has a change log now" in caught.value.reason


def test_positions_of_earlier_versions() -> None:
    """They have no run and no snapshot of the log: what they say is compared."""
    position = LogPosition.from_json({"table": "one", "changeset": 4})
    Log(runs={4: "a"}).check(position)
    with pytest.raises(ChangesDiverged, match="continue changeset 4"):
        Log(reached=3).check(position)


@pytest.mark.parametrize(
    ("log", "position", "why"),
    [
        (Log(uuid="two"), LogPosition("one", 4), "created again"),
        (Log(reached=3), LogPosition("one", 4), "ends with changeset 3"),
        (Log(runs={4: "b"}), LogPosition("one", 4, "a"), "of run b"),
        (Log(), LogPosition("one", 4, None, 15, 2), "rolled back"),
    ],
)
def test_changes_that_do_not_continue_what_was_read(log: Log, position: LogPosition, why: str) -> None:
    with pytest.raises(ChangesDiverged) as caught:
        log.check(position)
    assert why in caught.value.reason


def test_a_log_that_is_off() -> None:
    """It says nothing of its gap yet: who has read the table as it is goes on, and nobody else.

    A reader that goes on from a position would take an empty range for "nothing changed".
    """
    log = Log(reached=4, published=6)
    log.check(LogPosition("one", 6))
    for known in (3, 4, 5):
        with pytest.raises(ChangesMissing, match="changesets 5 to 6"):
            log.check(LogPosition("one", known))
    with pytest.raises(ChangesMissing, match="changesets 5 to 6"):
        log.between(LogPosition("one", 4), None)
    assert log.between(LogPosition("one", 3), 4) == log.between(3, None) == (3, 4)


def test_what_the_log_does_not_tell_stops_nobody() -> None:
    """A changeset without rows has no run in the log, and snapshots are expired."""
    Log().check(LogPosition("one", 4, "a", 5, 0))


def test_changes_that_are_not_there() -> None:
    """A gap stops only those who would have to pass it; old changes only those who need them."""
    log = Log(first=3, gaps=((5, 6),))
    log.check(LogPosition("one", 6))
    for known in (4, 5):
        with pytest.raises(ChangesMissing):
            log.check(LogPosition("one", known))
    with pytest.raises(ChangesForgotten):
        log.check(LogPosition("one", 1))
    assert log.between(2, 4) == (2, 4)
    assert log.between(6, None) == log.between(LogPosition("one", 6), None) == (6, 9)
    with pytest.raises(ChangesDiverged):
        log.between(LogPosition("two", 6), None)
    with pytest.raises(ChangesMissing):
        log.between(None, None)
    with pytest.raises(ChangesForgotten):
        log.between(1, 4)
    with pytest.raises(UnknownPoint):
        log.between(10, None)
