"""Find the line of a text file on which a column has a value, for people: Spark does not count lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from esker.project.sources import FilesSource
from esker.sources.files.csv_header import opened
from esker.sources.files.found import FoundFile

_MOST = 1_000_000
"""Who waits for an answer does not wait for more lines than these."""
_Rows = Iterator[tuple[int, Mapping[str, Any]]]


def line_of(
    file: FoundFile, source: FilesSource, declared: Sequence[str], column: str, value: str
) -> int | None:
    """Return the number of the first line on which a column has a value; None where nobody can tell.

    `declared` are the columns of files without a header. Raises SourceUnreadable.
    """
    if source.format not in ("csv", "jsonl"):
        return None
    encoding = "utf-8-sig" if source.java_encoding == "UTF-8" else source.encoding
    with opened(file) as stream:
        text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")
        rows = _of_csv(text, source, declared) if source.format == "csv" else _of_json(text)
        try:
            for number, row in rows:
                if row.get(column) == value:
                    return number
                if number > _MOST:
                    return None
        except (csv.Error, ValueError):
            return None
    return None


def _of_csv(lines: Iterable[str], source: FilesSource, declared: Sequence[str]) -> _Rows:
    reader = csv.reader(
        lines,
        delimiter=source.delimiter,
        quotechar=source.quote or None,
        quoting=csv.QUOTE_MINIMAL if source.quote else csv.QUOTE_NONE,
    )
    names = [] if source.header else list(declared)
    begun = 1
    for record in reader:
        if not names:
            names = record
        elif record:
            yield begun, dict(zip(names, record, strict=False))
        begun = reader.line_num + 1


def _of_json(lines: Iterable[str]) -> _Rows:
    for number, line in enumerate(lines, 1):
        record = json.loads(line, parse_float=str, parse_int=str) if line.strip() else {}
        if isinstance(record, dict):
            yield number, record
