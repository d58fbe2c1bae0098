"""Partition fields as users write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.project.layout import PartitionField, parse_partition_field

COLUMNS = st.from_regex(re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(\.[a-z]+)?"), fullmatch=True)
FIELDS = st.one_of(
    st.builds(PartitionField, COLUMNS),
    st.builds(PartitionField, COLUMNS, st.sampled_from(["year", "month", "day", "hour"])),
    st.builds(PartitionField, COLUMNS, st.sampled_from(["bucket", "truncate"]), st.integers(1, 10**6)),
)


@given(FIELDS)
def test_what_is_written_can_be_read(field: PartitionField) -> None:
    """A field's text is read as that field, spaces and case aside."""
    assert parse_partition_field(str(field)) == field
    assert parse_partition_field(f"  {field}  ") == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("country", PartitionField("country")),
        ("identity(country)", PartitionField("country")),
        ("days(placed_at)", PartitionField("placed_at", "day")),
        ("DAY( placed_at )", PartitionField("placed_at", "day")),
        ("bucket(16,id)", PartitionField("id", "bucket", 16)),
        ("truncate( 4 , name )", PartitionField("name", "truncate", 4)),
        ("month(address.since)", PartitionField("address.since", "month")),
    ],
)
def test_usual_spellings(text: str, field: PartitionField) -> None:
    """Spark's plural names and any spacing are understood."""
    assert parse_partition_field(text) == field


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no partition field"),
        ("  ", "is no partition field"),
        ("day(", "is no partition field"),
        ("day placed_at)", "is no partition field"),
        ("a, b", "is no partition field"),
        ("day()", "is no partition field"),
        ("week(a)", 'unknown transform "week"; known are identity, year'),
        ("bucket(id)", "should read bucket(16, id); the number comes first"),
        ("bucket(id, 16)", "is no partition field"),
        ("day(4, a)", "should read day(a)"),
        ("bucket(0, id)", "the number must be 1 or more"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    """The message shows how to write it."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_partition_field(text)
