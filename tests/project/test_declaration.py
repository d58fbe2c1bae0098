"""Names, table names and durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from esker.project.declaration import Duration, Name, TableName, parse_duration


@given(st.integers(0, 500), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(1, 999))
def test_a_duration_is_the_sum_of_its_parts(
    days: int, hours: int, minutes: int, seconds: int, ms: int
) -> None:
    """Units may be combined, with or without spaces."""
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
    parts = (f"{days}d", f"{hours}h", f"{minutes}m", f"{seconds}s", f"{ms}ms")
    assert parse_duration(" ".join(parts)) == expected
    assert parse_duration("".join(parts)) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("1h 30m", 5400), ("1.5h", 5400), ("2w", 1209600), ("250ms", 0.25)],
)
def test_durations_read_as_people_write_them(text: str, seconds: float) -> None:
    """The usual spellings."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [15, 1.5, True, "15", "m", "", "15 minutes", "-5m", "0s", "5m later", "99999999999999w", "1e3s", []],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    """A bare number could be seconds or minutes; nothing is guessed, and nothing crashes."""
    with pytest.raises(ValidationError):
        TypeAdapter(Duration).validate_python(value)


@pytest.mark.parametrize("name", ["a", "sales", "sales_2", "a" * 63])
def test_names(name: str) -> None:
    """Lower-case letters, digits and _ make a name."""
    assert TypeAdapter(Name).validate_python(name) == name


@pytest.mark.parametrize("name", ["", "Sales", "2nd", "_x", "a-b", "a b", "a.b", "é", "a\n", "a" * 64])
def test_what_is_no_name(name: str) -> None:
    """Everything else is refused: names stand in SQL, file names and table properties."""
    with pytest.raises(ValidationError):
        TypeAdapter(Name).validate_python(name)


@pytest.mark.parametrize("name", ["shop.sales", "a.b.c", "_a._b", "Shop.Sales"])
def test_table_names(name: str) -> None:
    """A table has a namespace, of one or more parts."""
    assert TypeAdapter(TableName).validate_python(name) == name


@pytest.mark.parametrize(
    "name", ["sales", "shop.", ".sales", "shop..sales", "shop.sa les", "shop.1", "shop.`x`"]
)
def test_what_is_no_table_name(name: str) -> None:
    """A table without a namespace, or with characters that need quoting, is refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(TableName).validate_python(name)
