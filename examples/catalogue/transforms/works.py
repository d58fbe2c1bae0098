"""Works, which people search for: made of the records of both catalogues, with the same fields.

What readers must not see is no work: records that CALM has not published, that Sierra suppresses, or of
which only items are known. Nothing is returned for them, and a work that was there is deleted.

When a record was saved is not in its work: saved as it was, it has not changed, and nobody is told.
"""

from __future__ import annotations

import json
import re
from typing import Any

import esker

_YEAR = re.compile(r"\b\d{4}\b")


@esker.transform
def from_calm(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the work that a record of the archive is."""
    if not row["published"]:
        return None
    fields = row["data"]
    dates = fields["Date"] or []
    return {
        "catalogue": "calm",
        "title": _first(fields["Title"]),
        "reference": _first(fields["RefNo"]),
        "level": _first(fields["Level"]),
        "dates": dates,
        "year": _first([int(year) for date in dates for year in _YEAR.findall(date)]),
        "creators": fields["CreatorName"] or [],
        "languages": fields["Language"] or [],
        # Typed by hand, in lines: a reader sees one paragraph.
        "description": " ".join(" ".join(fields["Description"] or []).split()),
    }


@esker.transform
def from_sierra(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the work that a bib of the library is, with how many copies there are."""
    if row["maybe_bib_record"] is None:
        return None
    bib = json.loads(row["maybe_bib_record"]["data"])
    if bib.get("suppressed"):
        return None
    items = [json.loads(item["data"]) for item in row["item_records"].values()]
    year = bib.get("publishYear")
    return {
        "catalogue": "sierra",
        "title": bib["title"],
        "reference": bib["id"],
        "level": "Book",
        "dates": [] if year is None else [str(year)],
        "year": year,
        "creators": [bib["author"]] if bib.get("author") else [],
        "languages": [bib["lang"]["name"]] if bib.get("lang") else [],
        "copies": len(items),
        "available": sum(item["status"] == "available" for item in items),
    }


def _first(values: list[Any] | None) -> Any:
    return values[0] if values else None
