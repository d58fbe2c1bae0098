"""The page of catalogs says what the suite has found, of every kind and everything it tries."""

from __future__ import annotations

import json

import pytest

from tests.conformance.capabilities import CAPABILITIES
from tests.conformance.encodings import ENCODINGS, UNREADABLE
from tests.conformance.lakes import KINDS
from tests.conformance.reading import READERS
from tests.conformance.results import FILE


def test_the_results_are_those_of_the_suite() -> None:
    """A new kind, capability or limit needs `make soak`; the page itself is compared with the other ones."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    assert document["kinds"] == {name: kind.title for name, kind in KINDS.items()}
    assert list(document["capabilities"]) == list(CAPABILITIES)
    expected = {
        name: {capability: kind.limits.get(capability, "yes") for capability in CAPABILITIES}
        for name, kind in KINDS.items()
    }
    assert document["results"] == expected
    assert document["programs"] == READERS
    assert document["readers"] == {
        name: {reader: kind.unread.get(reader, "yes") for reader in READERS} for name, kind in KINDS.items()
    }
    assert document["encodings"] == {
        encoding: {
            reader: limit.why if (limit := UNREADABLE.get((reader, encoding))) else "yes"
            for reader in READERS
        }
        for encoding in ENCODINGS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_limits_are_of_things_that_are_tried(kind: str) -> None:
    """A reason for something that nobody tries would never be looked at again."""
    assert set(KINDS[kind].limits) <= set(CAPABILITIES)
