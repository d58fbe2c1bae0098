"""A point in a table's history, as people and programs name it."""

from __future__ import annotations

from datetime import UTC, datetime

from esker.errors import UnknownPoint

Point = int | str | datetime
"""A point in a table's history: a changeset, a snapshot id, or a time."""

_LARGEST_CHANGESET = 10**12
"""Snapshot ids are random numbers of 19 digits; changesets count from one."""


def read_point(point: Point) -> int | datetime:
    """Return a point as a number or as a time with its zone, or raise UnknownPoint."""
    if isinstance(point, str):
        point = int(point) if point.isdigit() else _moment(point)
    if isinstance(point, datetime):
        return point if point.tzinfo else point.replace(tzinfo=UTC)
    return point


def is_changeset(number: int) -> bool:
    """Tell whether a number is a changeset's, and no snapshot's."""
    return number < _LARGEST_CHANGESET


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UnknownPoint(text, "it is no changeset, no snapshot id and no time") from None
