"""What the suite has found of catalogs and readers.

Tests write it to the file that CATALOG_RESULTS names, and nowhere without that: they change nothing in the
source tree. Afterwards `make soak` runs `python -m tests.conformance.results FILE`, which takes it over into
docs/catalogs.json, with the date and the commit of each cell. The page of catalogs is generated from there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conformance.capabilities import CAPABILITIES
from tests.conformance.encodings import ENCODINGS
from tests.conformance.lakes import KINDS
from tests.conformance.reading import READERS

FILE = Path(__file__).parents[2] / "docs/catalogs.json"

Results = dict[str, dict[str, str]]
"""By line and column of a table: "yes", why not, or "failed"."""
DatedResults = dict[str, dict[str, dict[str, str]]]
"""The same, each cell with `found`, `date` and `commit`."""
Cell = TypeVar("Cell")


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
    """Add the results of a test module to the file that CATALOG_RESULTS names, if it names one."""
    if (place := os.environ.get("CATALOG_RESULTS")) is None:
        return
    file = Path(place)
    known: dict[str, Results] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for part, lines in asdict(found).items():
        for line, cells in lines.items():
            known.setdefault(part, {}).setdefault(line, {}).update(cells)
    file.write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")


def take_over(new: dict[str, Results], known: dict[str, Any], date: str, commit: str) -> dict[str, Any]:
    """Return the document of docs/catalogs.json with new cells of this date and commit; others stay."""
    dated = {
        part: {
            line: {column: {"found": cell, "date": date, "commit": commit} for column, cell in cells.items()}
            for line, cells in lines.items()
        }
        for part, lines in new.items()
    }

    def merged(part: str, lines: Iterable[str], columns: Iterable[str]) -> DatedResults:
        return _merged(known.get(part, {}), dated.get(part, {}), lines, columns)

    return {
        "capabilities": {name: (try_it.__doc__ or "").strip() for name, try_it in CAPABILITIES.items()},
        "kinds": {name: kind.title for name, kind in KINDS.items()},
        "programs": READERS,
        "results": merged("results", KINDS, CAPABILITIES),
        "readers": merged("readers", KINDS, READERS),
        "encodings": merged("encodings", ENCODINGS, READERS),
    }


def as_text(document: dict[str, Any]) -> str:
    """Return the document as JSON, with a line for each cell."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return re.sub(r'\{\s+("found": .*)\s+("date": .*)\s+("commit": .*)\s+\}', r"{\1 \2 \3}", text) + "\n"


def _merged(
    known: dict[str, dict[str, Cell]],
    found: dict[str, dict[str, Cell]],
    lines: Iterable[str],
    columns: Iterable[str],
) -> dict[str, dict[str, Cell]]:
    """Return a table with what was found now in the place of what was known, in the order of the page."""
    both = {line: known.get(line, {}) | found.get(line, {}) for line in lines}
    return {
        line: {column: cells[column] for column in columns if column in cells}
        for line, cells in both.items()
        if cells
    }


if __name__ == "__main__":
    results = Path(sys.argv[1])
    if results.is_file():
        head = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
        before = json.loads(FILE.read_text(encoding="utf-8"))
        today = datetime.now(UTC).date().isoformat()
        after = take_over(json.loads(results.read_text(encoding="utf-8")), before, today, head.stdout.strip())
        FILE.write_text(as_text(after), encoding="utf-8")
        results.unlink()
