"""The ledger entry as it stands in a table's properties."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import LedgerTooLarge
from esker.ledger.entry import Head, LedgerEntry, as_properties, entry_digest, read_entry, read_head

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
POSITIONS = st.dictionaries(st.text(max_size=6), JSON, max_size=3)
NUMBERS = st.integers(0, 2**63 - 1)
TEXTS = st.text(max_size=12)
ENTRIES = st.builds(LedgerEntry, POSITIONS, NUMBERS, TEXTS, TEXTS, NUMBERS, NUMBERS, NUMBERS, TEXTS, TEXTS)
ENTRY = LedgerEntry({"files": 1}, 1, "r", "w", 1, 5, 1, "shop", "files")


@given(ENTRIES, st.builds(Head, NUMBERS, NUMBERS, NUMBERS))
def test_what_is_written_is_read(entry: LedgerEntry, head: Head) -> None:
    """Entry and head come back from the properties as they were; other pipelines see neither."""
    properties = as_properties("sales", entry, head)
    assert read_entry(properties, "sales") == entry
    assert read_head(properties) == head
    assert read_entry(properties, "rates") is None


def test_a_table_that_nobody_published_into_has_no_ledger() -> None:
    """Foreign properties are not ours."""
    assert read_entry({"owner": "me"}, "sales") is None
    assert read_head({"owner": "me"}) is None


@given(ENTRIES, ENTRIES)
def test_digests_are_equal_for_equal_entries_only(one: LedgerEntry, other: LedgerEntry) -> None:
    """The digest stands for the entry, through the properties and back."""
    assert (entry_digest(one) == entry_digest(other)) == (one == other)
    stored = read_entry(as_properties("p", one, Head(1, 1, 1)), "p")
    assert entry_digest(stored) == entry_digest(one)
    assert entry_digest(one) != entry_digest(None)


def test_the_order_of_a_positions_keys_means_nothing() -> None:
    """Two programs that write the same position write the same entry."""
    one, other = (replace(ENTRY, position=position) for position in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert entry_digest(one) == entry_digest(other)


@pytest.mark.parametrize("filler", ["x", "é"])
def test_an_entry_that_catalogs_would_cut_is_refused(filler: str) -> None:
    """At most 3,500 bytes: counted as stored, and refused before anything is committed."""
    empty = len(as_properties("p", replace(ENTRY, position={"f": ""}), Head(1, 1, 1))["esker.ledger.p"])
    width = len(json.dumps(filler)) - 2
    fits = {"f": filler * ((3_500 - empty) // width)}
    as_properties("p", replace(ENTRY, position=fits), Head(1, 1, 1))
    too_long: dict[str, Any] = {"f": filler * ((3_500 - empty) // width + 1)}
    with pytest.raises(LedgerTooLarge, match="3500 are allowed"):
        as_properties("p", replace(ENTRY, position=too_long), Head(1, 1, 1))
