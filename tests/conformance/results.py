"""What the suite has found, kept in docs/catalogs.json, from which the page of catalogs is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.capabilities import CAPABILITIES
from tests.conformance.encodings import ENCODINGS
from tests.conformance.lakes import KINDS
from tests.conformance.reading import READERS

FILE = Path(__file__).parents[2] / "docs/catalogs.json"

Results = dict[str, dict[str, str]]
"""By line and column of a table: "yes", why not, or "failed"."""


@dataclass
class Found:
    """What tests have found."""

    results: Results = field(default_factory=dict)
    """By kind and capability."""
    readers: Results = field(default_factory=dict)
    """By kind and reader: of all capabilities that were tried."""
    encodings: Results = field(default_factory=dict)
    """By encoding and reader."""


@contextmanager
def told(cells: dict[str, str], columns: Iterable[str]) -> Iterator[None]:
    """Say of these columns that they failed, should what is done here fail. A skipped test tells nothing."""
    try:
        yield
    except pytest.skip.Exception:
        raise
    except BaseException:
        cells |= dict.fromkeys(columns, "failed")
        raise


def write(found: Found) -> None:
    """Keep what was found; what is known of others stays."""
    known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    document = {
        "capabilities": {name: (try_it.__doc__ or "").strip() for name, try_it in CAPABILITIES.items()},
        "kinds": {name: kind.title for name, kind in KINDS.items()},
        "programs": READERS,
        "results": _merged(known.get("results", {}), found.results, KINDS, CAPABILITIES),
        "readers": _merged(known.get("readers", {}), found.readers, KINDS, READERS),
        "encodings": _merged(known.get("encodings", {}), found.encodings, ENCODINGS, READERS),
    }
    FILE.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _merged(known: Results, found: Results, lines: Iterable[str], columns: Iterable[str]) -> Results:
    """Return a table with what was found now in the place of what was known, in the order of the page."""
    both = {line: known.get(line, {}) | found.get(line, {}) for line in lines}
    return {
        line: {column: cells[column] for column in columns if column in cells}
        for line, cells in both.items()
        if cells
    }
