"""What the suite has found, kept in docs/catalogs.json, from which the page of catalogs is written."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conformance.capabilities import CAPABILITIES
from tests.conformance.lakes import KINDS

FILE = Path(__file__).parents[2] / "docs/catalogs.json"

Results = dict[str, dict[str, str]]
"""By kind and capability: "yes", why not, or "failed"."""


def read() -> Results:
    """Return what was found last."""
    found: Results = json.loads(FILE.read_text(encoding="utf-8"))["results"] if FILE.is_file() else {}
    return found


def write(found: Results) -> None:
    """Keep what was found; what is known of others stays."""
    known = read()
    for kind, cells in found.items():
        known[kind] = known.get(kind, {}) | cells
    document = {
        "capabilities": {name: (try_it.__doc__ or "").strip() for name, try_it in CAPABILITIES.items()},
        "kinds": {name: kind.title for name, kind in KINDS.items()},
        "results": {
            kind: {name: known[kind][name] for name in CAPABILITIES if name in known[kind]}
            for kind in KINDS
            if kind in known
        },
    }
    FILE.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
