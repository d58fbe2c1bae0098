"""A source that changed while it was read."""

from __future__ import annotations

RESTARTS = 3
"""How often reading begins again before it is given up."""


class Restart(Exception):
    """What was read is void, and must be read from its beginning."""
