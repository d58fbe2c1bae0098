"""What a change log says of the changesets that it lacks, in a property of bounded length."""

from __future__ import annotations

import json

from esker.ledger.logged import gap_property
from esker.ledger.owed import GAPS, TRIMMED, gaps_in


def after(*gaps: tuple[int, int]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for gap in gaps:
        properties |= gap_property(properties, *gap)
    return properties


def test_gaps_side_by_side_are_one() -> None:
    assert gaps_in(after((2, 3), (4, 4), (6, 9))) == ((2, 4), (6, 9))


def test_what_was_forgotten_is_no_gap() -> None:
    properties = after((2, 2), (4, 7), (9, 9)) | {TRIMMED: json.dumps({"first": 6, "at": None})}
    assert gaps_in(gap_property(properties, 12, 12)) == ((4, 7), (9, 9), (12, 12))


def test_very_many_gaps_fit_into_a_property() -> None:
    """A table that two pipelines fill, one of them without a log, has one with every second run.

    No gap is forgotten: of what can still be read to the end of the log, none is said to be missing.
    """
    gaps = [(number, number) for number in range(2, 20_000, 2)]
    text = after(*gaps)[GAPS]
    assert len(text) <= 1_000
    found = gaps_in({GAPS: text})
    assert all(any(first <= gap[0] <= last for first, last in found) for gap in gaps)
    assert found[0][0] == 2
    assert found[-50:] == tuple(gaps[-50:])
