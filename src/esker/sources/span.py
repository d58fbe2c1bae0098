"""What of a source is to be loaded again: a range of time, some records, or all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Span:
    """A half-open range of time, or some records; all of the source where nothing is said."""

    since: datetime | None = None
    until: datetime | None = None
    ids: tuple[str, ...] = ()
    replaces_equal: bool = False
    """Rows that are as new as the stored ones take their place: they have been made in another way."""
    reaches_now: bool = False
    """Also what is too new for a run, which waits until a window and its lag are over: for whoever only looks
    what is there."""

    @property
    def is_full(self) -> bool:
        return self.since is None and self.until is None and not self.ids

    def holds(self, moment: datetime) -> bool:
        """Tell whether a moment lies inside."""
        return (self.since is None or self.since <= moment) and (self.until is None or moment < self.until)

    def __str__(self) -> str:
        if self.is_full:
            return "all of the source"
        if self.ids:
            return f"{len(self.ids)} record{'s' if len(self.ids) > 1 else ''} by id"
        ends = (("from", self.since), ("to", self.until))
        return " ".join(f"{word} {end:%Y-%m-%d %H:%M}" for word, end in ends if end is not None)

    def as_json(self) -> dict[str, Any]:
        more: dict[str, Any] = {"ids": list(self.ids)} if self.ids else {}
        if self.replaces_equal:
            more["replaces_equal"] = True
        return {
            "from": self.since.isoformat() if self.since else None,
            "to": self.until.isoformat() if self.until else None,
            **more,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Span:
        since, until = document["from"], document["to"]
        return cls(
            datetime.fromisoformat(since) if since else None,
            datetime.fromisoformat(until) if until else None,
            tuple(document.get("ids", ())),
            bool(document.get("replaces_equal", False)),
        )
