"""Dead letters as values: the rows of their table, and what these say together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from esker.project.types import Column, Plain

DEAD, RESOLVED = "dead", "resolved"
COLUMNS = (
    Column("event", Plain("bigint"), required=True, doc="Of one id, the row with the highest counts"),
    Column("id", Plain("string"), required=True),
    Column("status", Plain("string"), required=True, doc="dead or resolved"),
    Column("key", Plain("string"), doc="The columns that identify the row, as JSON"),
    Column("op", Plain("string")),
    Column("changeset", Plain("bigint"), doc="The newest change that could not be delivered"),
    Column("version", Plain("bigint")),
    Column(
        "stage",
        Plain("string"),
        doc="What the row failed at, transform or target; later changes may wait behind it",
    ),
    Column("error", Plain("string")),
    Column("payload", Plain("string"), doc="What could not be delivered, as JSON"),
    Column("attempts", Plain("bigint")),
    Column("first_seen_at", Plain("timestamp")),
    Column("seen_at", Plain("timestamp"), required=True),
)
ARROW = pa.schema(
    [
        ("event", pa.int64()),
        ("id", pa.string()),
        ("status", pa.string()),
        ("key", pa.string()),
        ("op", pa.string()),
        ("changeset", pa.int64()),
        ("version", pa.int64()),
        ("stage", pa.string()),
        ("error", pa.string()),
        ("payload", pa.string()),
        ("attempts", pa.int64()),
        ("first_seen_at", pa.timestamp("us", tz="UTC")),
        ("seen_at", pa.timestamp("us", tz="UTC")),
    ]
)
NARROW = ("event", "id", "status", "key", "stage", "error", "attempts", "first_seen_at", "changeset")
"""What must be read to know which letters are dead."""


@dataclass(frozen=True)
class DeadLetter:
    """What is known of a row that could not be delivered."""

    id: str
    key: str
    """Its columns as JSON."""
    stage: str
    error: str
    attempts: int
    first_seen_at: datetime
    changeset: int
    event: int

    @property
    def has_null(self) -> bool:
        """A part of its id is null: no row can be found by it."""
        return None in json.loads(self.key).values()


@dataclass(frozen=True)
class Waiting:
    """The letters of a consumer that are dead now."""

    letters: Mapping[str, DeadLetter]
    """By id."""
    event: int
    """The number of the last event."""


def current_letters(events: Sequence[Mapping[str, Any]]) -> Waiting:
    """Return the letters that are dead after these events."""
    newest = (events[place] for place in last_of_each(events))
    letters = {
        event["id"]: DeadLetter(
            id=event["id"],
            key=event["key"],
            stage=event["stage"],
            error=event["error"],
            attempts=event["attempts"],
            first_seen_at=event["first_seen_at"],
            changeset=event["changeset"],
            event=event["event"],
        )
        for event in newest
        if event["status"] == DEAD
    }
    return Waiting(letters, max((event["event"] for event in events), default=0))


def last_of_each(events: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where the event stands that counts, of each id."""
    places: dict[str, int] = {}
    for place, event in enumerate(events):
        known = places.get(event["id"])
        # Of two with one number, from a process that did not know of the other, the bad news counts.
        if known is None or _rank(event) > _rank(events[known]):
            places[event["id"]] = place
    return sorted(places.values())


def _rank(event: Mapping[str, Any]) -> tuple[int, bool, int, int]:
    return event["event"], event["status"] == DEAD, event["attempts"] or 0, event["changeset"] or 0
