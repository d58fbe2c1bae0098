"""Commits of others are remembered in little room."""

from __future__ import annotations

import json

from esker.ledger.foreign import shortened


def test_ranges_that_do_not_fit_become_wider() -> None:
    """What is remembered of many commits holds each of them, and the widest gaps stay open."""
    many = tuple((100 * number + number % 7, 100 * number + 10) for number in range(1, 400))
    kept = shortened((*many, (1_000_000, 1_000_001)))
    assert len(json.dumps(kept, separators=(",", ":"))) <= 1_000
    assert all(any(a <= first and last <= b for a, b in kept) for first, last in many)
    assert kept[-1] == (1_000_000, 1_000_001)
    assert shortened(((1, 2), (5, 5))) == ((1, 2), (5, 5))
