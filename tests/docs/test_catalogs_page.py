"""The page of catalogs says what the suite has found, of every kind and everything it tries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.capabilities import CAPABILITIES
from tests.conformance.encodings import ENCODINGS, UNREADABLE
from tests.conformance.lakes import KINDS
from tests.conformance.reading import READERS
from tests.conformance.results import FILE, Found, as_text, take_over, write


def test_the_results_are_those_of_the_suite() -> None:
    """A new kind, capability or limit needs `make soak`; the page itself is compared with the other ones."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    assert document["kinds"] == {name: kind.title for name, kind in KINDS.items()}
    assert list(document["capabilities"]) == list(CAPABILITIES)
    expected = {
        name: {capability: kind.limits.get(capability, "yes") for capability in CAPABILITIES}
        for name, kind in KINDS.items()
    }
    assert _found(document["results"]) == expected
    assert document["programs"] == READERS
    assert _found(document["readers"]) == {
        name: {reader: kind.unread.get(reader, "yes") for reader in READERS} for name, kind in KINDS.items()
    }
    assert _found(document["encodings"]) == {
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


def _found(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {line: {column: cell["found"] for column, cell in cells.items()} for line, cells in table.items()}


def test_every_cell_has_its_date_and_commit() -> None:
    """A reader sees when, and of which Esker, each cell was measured."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    cells = [
        cell
        for part in ("results", "readers", "encodings")
        for line in document[part].values()
        for cell in line.values()
    ]
    assert len(cells) > 200
    for cell in cells:
        assert list(cell) == ["found", "date", "commit"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", cell["date"])
        assert re.fullmatch(r"[0-9a-f]{7,}", cell["commit"])
    assert FILE.read_text(encoding="utf-8") == as_text(document)


def test_results_go_to_the_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CATALOG_RESULTS a test writes nothing; with it, new cells are dated and others stay."""
    before = FILE.read_text(encoding="utf-8")
    found = Found(results={"sqlite": {"append": "failed"}})
    monkeypatch.delenv("CATALOG_RESULTS", raising=False)
    write(found)
    assert FILE.read_text(encoding="utf-8") == before
    monkeypatch.setenv("CATALOG_RESULTS", str(tmp_path / "results.json"))
    write(found)
    write(Found(readers={"sqlite": {"duckdb": "yes"}}))
    assert FILE.read_text(encoding="utf-8") == before

    new = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    document = json.loads(before)
    after = take_over(new, document, "2026-12-01", "abcdef0")
    assert after["results"]["sqlite"]["append"] == {
        "found": "failed",
        "date": "2026-12-01",
        "commit": "abcdef0",
    }
    assert after["readers"]["sqlite"]["duckdb"]["commit"] == "abcdef0"
    assert after["results"]["sqlite"]["create"] == document["results"]["sqlite"]["create"]
    assert after["results"]["hive"] == document["results"]["hive"]
