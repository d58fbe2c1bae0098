"""How tags are called by which consumers say how far they are."""

from __future__ import annotations

CONSUMER_TAG = "esker-consumer-"
"""How tags on a change log begin that say how far a consumer has read: what lies behind one is kept."""
START_TAG = "esker-start-"
"""How tags begin of consumers that will be told all changes, and have not been told the first ones yet."""


def consumer_tag(project: str, consumer: str) -> str:
    """Return the tag that says how far a consumer is. Two projects may read one table."""
    return f"{CONSUMER_TAG}{project.replace('@', '-')}-{consumer}"


def start_tag(project: str, consumer: str) -> str:
    """Return the tag that keeps all changes for a consumer which has been told nothing yet.

    The other one would not do: it says that the changes of its snapshot have been told.
    """
    return f"{START_TAG}{project.replace('@', '-')}-{consumer}"
