"""Values of a cursor, and the same a while before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from esker.sources.jdbc.cursor import earlier

SECONDS = timedelta(seconds=3)


@pytest.mark.parametrize(
    ("value", "lag", "expected"),
    [
        ("9007199254740993", 3, "9007199254740990"),
        ("-1", 3, "-4"),
        ("10.25", 3, "7.25"),
        ("9007199254740993.0001", 1, "9007199254740992.0001"),
        ("1e20", 1, "99999999999999999999"),
        ("2026-01-01", SECONDS, "2025-12-31"),
        ("2026-01-01 00:00:01.5+00", SECONDS, "2025-12-31 23:59:58.5+00"),
    ],
)
def test_a_value_so_far_before_another(value: str, lag: int | timedelta, expected: str) -> None:
    """With all its digits, and written alike."""
    assert earlier(value, lag) == expected


@pytest.mark.parametrize(
    ("value", "lag"), [("abc", 3), ("NaN", 3), ("inf", 3), ("1_000", 3), ("2026-01-01", 3), ("7", SECONDS)]
)
def test_values_of_another_kind(value: str, lag: int | timedelta) -> None:
    with pytest.raises(ValueError, match=value):
        earlier(value, lag)
