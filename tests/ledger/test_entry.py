"""The ledger entry as it stands in a table's properties."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import LedgerTooLarge, LedgerTooNew, LedgerUnreadable
from esker.ledger.entry import Head, LedgerEntry, as_properties, entry_digest, read_entry, read_head
from esker.ledger.foreign import foreign_ranges
from esker.ledger.logged import logged_properties
from esker.ledger.owed import (
    Named,
    OutboxEntry,
    Trimmed,
    gaps_in,
    logged_at,
    read_outbox,
    trimmed,
)

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


Read = Callable[[Mapping[str, str]], Any]
FIRST: dict[str, tuple[Read, str, Any]] = {
    "esker.ledger.sales": (
        lambda properties: read_entry(properties, "sales"),
        '{"changeset":1,"epoch":1,"position":{"files":1},"project":"shop","run":"r","sequence":1,'
        '"snapshot":5,"source":"files","writer":"w"}',
        ENTRY,
    ),
    "esker.head": (read_head, '{"changeset":1,"sequence":3,"snapshot":2}', Head(1, 2, 3)),
    "esker.log": (
        lambda properties: Named.by(properties, "esker.log"),
        '{"location":"s3://b/l","table":"shop.l","uuid":"u"}',
        Named("shop.l", "u", "s3://b/l"),
    ),
    "esker.outbox": (
        read_outbox,
        '[{"f":[["a.parquet",7]],"n":2,"s":5}]',
        (OutboxEntry(2, 1, 5, {"esker.log": (("a.parquet", 7),)}),),
    ),
    "esker.gaps": (gaps_in, "[[2,3]]", ((2, 3),)),
    "esker.logged.at": (logged_at, '{"sequence":3,"snapshot":2}', (2, 3)),
    "esker.trimmed": (
        trimmed,
        '{"at":"2026-03-01T00:00:00+00:00","first":4}',
        Trimmed(4, datetime(2026, 3, 1, tzinfo=UTC)),
    ),
    "esker.foreign": (foreign_ranges, "[[3,4]]", ((3, 4),)),
}
"""Each property as Esker wrote it before properties had a version, and what it means."""


@pytest.mark.parametrize("name", FIRST)
def test_what_an_older_esker_wrote_is_read(name: str) -> None:
    """A property without a version is read as version 1."""
    read, text, value = FIRST[name]
    assert read({name: text}) == value
    assert not read({})
    if text.startswith("{"):
        assert read({name: json.dumps({"version": 1, **json.loads(text)})}) == value


@pytest.mark.parametrize("name", FIRST)
def test_what_a_newer_esker_wrote_is_refused(name: str) -> None:
    """A higher version or an unknown field is named: the next commit would drop what it says."""
    read, text, _ = FIRST[name]
    old = json.loads(text)
    newer = {"version": 2, **(old if isinstance(old, dict) else {"items": old})}
    with pytest.raises(LedgerTooNew, match="newer Esker") as refused:
        read({name: json.dumps(newer)})
    assert "version 2, this Esker knows 1" in (refused.value.reason or "")
    parts = [old] if isinstance(old, dict) else [each for each in old if isinstance(each, dict)]
    for part in parts:
        part["lanes"] = 3
        with pytest.raises(LedgerTooNew, match=name.replace(".", r"\.")) as refused:
            read({name: json.dumps(old)})
        assert '"lanes"' in (refused.value.reason or "")


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("text", ["", "3", '{"version": "x"}', '{"n": ', '[{"n": 1}]', "[[1]]"])
def test_what_was_edited_is_refused(name: str, text: str) -> None:
    """Text of no known format is shown as it is."""
    with pytest.raises(LedgerUnreadable, match="cannot be read"):
        FIRST[name][0]({name: text})


def test_what_is_written_names_its_version() -> None:
    """A later Esker knows how to read it, an earlier one that it cannot."""
    written = as_properties("p", ENTRY, Head(1, 1, 1)) | logged_properties(1, 2, 3)
    versions = {n: json.loads(text)["version"] for n, text in written.items() if n != "esker.logged"}
    assert versions == {"esker.ledger.p": 1, "esker.head": 1, "esker.logged.at": 1}
