"""What happened to the rows of a batch, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

_OF_OUTCOME = {
    "insert": "inserted",
    "update": "updated",
    "delete": "deleted",
    "undelete": "undeleted",
    "touch": "unchanged",
    "unchanged": "unchanged",
    "stale": "stale",
    "ignored": "ignored",
}


@dataclass(frozen=True)
class RowCounts:
    """What happened to the rows. `read` is the sum of all others but `missing`."""

    read: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    undeleted: int = 0
    unchanged: int = 0
    stale: int = 0
    duplicates: int = 0
    ignored: int = 0
    quarantined: int = 0
    missing: int = 0
    """Deletes of what a complete snapshot, or a batch's rows of a key, no longer have: no row was read for
    them."""

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(**{name: value + getattr(other, name) for name, value in asdict(self).items()})

    @classmethod
    def of_outcomes(cls, outcomes: Mapping[str, int], *, duplicates: int, quarantined: int) -> RowCounts:
        """Count outcomes of the state table, and the rows that never got that far."""
        counts = dict.fromkeys(_OF_OUTCOME.values(), 0)
        missing = outcomes.get("missing", 0)
        for outcome, number in outcomes.items():
            if outcome != "missing":
                counts[_OF_OUTCOME[outcome]] += number
        total = sum(counts.values()) + duplicates + quarantined
        return cls(read=total, duplicates=duplicates, quarantined=quarantined, missing=missing, **counts)
