"""Small CSV files, read in this process: a Spark job takes as long for ten lines as for a million.

Only files of which each line means the same here and to Spark, beyond doubt. Whatever is out of the ordinary
is left to Spark, which also has the words for what is wrong: an open quote, a value more or less, blanks that
may be a row, an encoding, options of Spark's reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from esker.project.sources import FilesSource
from esker.sources.files.csv_header import Header
from esker.sources.files.found import FoundFile

_MOST = 1 << 20
"""Bytes of all files together, unpacked: read within a fraction of what a job takes."""
_LINE_END = re.compile(r"\r\n|\n|\r")
_UNUSUAL = re.compile("[\0\x85\u2028\u2029]")
"""A zero byte is a quote or a comment to Spark's parser, and Java takes the others for ends of lines."""
_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's trim() removes."""

Values = Mapping[str, list[str]]
"""The values of each column, without those that are null; names that differ in case only are one."""


def read_values(files: Mapping[FoundFile, Header], source: FilesSource) -> Values | None:
    """Return what stands in files, by column; None where Spark has to read them."""
    if source.multi_line or source.java_encoding != "UTF-8" or source.options:
        return None
    if sum(file.size for file in files) > _MOST:
        return None
    values: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    room = _MOST
    for file, header in files.items():
        text = _text(file, room)
        rows = None if text is None else _rows(text, len(header.names), source)
        if text is None or rows is None:
            return None
        room -= len(text)
        places = [values.setdefault(names.setdefault(name.lower(), name), []) for name in header.names]
        for row in rows:
            for place, value in zip(places, row, strict=True):
                if value is not None:
                    place.append(value)
    return values


def _text(file: FoundFile, most: int) -> str | None:
    """Return a file's text; None for one that is longer, or is none."""
    try:
        with pa.input_stream(str(file.location), compression="detect") as stream:
            data = stream.read(most + 1)
    except (OSError, pa.ArrowException):
        return None
    if len(data) > most:
        return None
    try:
        text: str = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _UNUSUAL.search(text) else text


def _rows(text: str, width: int, source: FilesSource) -> list[list[str | None]] | None:
    """Return the records of a text, with so many values each; None if there is any doubt about one."""
    has_quotes = bool(source.quote) and source.quote in text
    if has_quotes and source.null_value:
        return None
    split = _Quoted(source).split if has_quotes else _plain(source)
    rows = []
    for line in _LINE_END.split(text):
        if not line:
            continue
        row = split(line) if line.strip(_BLANKS) else None
        if row is None or len(row) != width:
            return None
        rows.append(row)
    return rows[1:] if source.header else rows


def _plain(source: FilesSource) -> Callable[[str], list[str | None]]:
    """Return what splits a line without quotes."""
    if source.null_value:
        return lambda line: [None if v == source.null_value else v for v in line.split(source.delimiter)]
    return lambda line: [value or None for value in line.split(source.delimiter)]


class _Quoted:
    """Splits lines whose values stand in quotes as a whole, or have none."""

    def __init__(self, source: FilesSource) -> None:
        self._quote, self._delimiter = source.quote, source.delimiter
        quote, delimiter = re.escape(source.quote), re.escape(source.delimiter)
        self._value = re.compile(f"{quote}(?:[^{quote}]++|{quote}{quote})*+{quote}|[^{quote}{delimiter}]*+")

    def split(self, line: str) -> list[str | None] | None:
        """Return the values of a line; None for one that is written otherwise."""
        values: list[str | None] = []
        at = 0
        while True:
            found = self._value.match(line, at)
            assert found is not None  # it matches nothing at all too
            value, at = found[0], found.end()
            if value.startswith(self._quote):
                values.append(value[1:-1].replace(self._quote * 2, self._quote))
            else:
                values.append(value or None)
            if at == len(line):
                return values
            if line[at] != self._delimiter:
                return None
            at += 1
