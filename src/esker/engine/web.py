"""What web servers say of failures that may pass, for those who read from them and those who send."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

# They write down every address, also those with a key among their parameters.
for _name in ("httpx2", "httpcore2", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)

PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses that may be others a moment later."""
LONGEST_WAIT = timedelta(minutes=5)
"""Beyond this, a server that asks to be left alone is left alone until the next run."""
_NEVER = 1e9


def date_of(headers: Mapping[str, str]) -> datetime | None:
    """Return when an answer was made; one that a cache has kept is as old as that says."""
    try:
        made: Any = parsedate_to_datetime(headers["Date"])
        age = timedelta(seconds=int(headers.get("Age", 0)))
    except (KeyError, ValueError, OverflowError):
        return None
    return made + age if made.tzinfo else None


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return how long a server wants to be left alone: it says seconds, or a date."""
    text = headers.get("Retry-After")
    now = date_of(headers) or datetime.now(UTC)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment: Any = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (moment - now).total_seconds() if moment.tzinfo else 0.0
    if not seconds < _NEVER:  # also what is no number
        return timedelta(seconds=_NEVER)
    return timedelta(seconds=max(0.0, seconds))
