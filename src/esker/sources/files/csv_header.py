"""The header of a CSV file: read by Esker, because Spark takes one file's header for all."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from esker.errors import SourceMalformed, SourceUnreadable
from esker.project.sources import FilesSource
from esker.sources.files.csv_grammar import Grammar
from esker.sources.files.found import FoundFile

_LIMIT = 1 << 18
_OTHER_DELIMITERS = ";\t|,"
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, and how its lines end."""

    names: tuple[str, ...]
    line_end: str = "\n"


def read_header(file: FoundFile, source: FilesSource, declared: tuple[str, ...]) -> Header:
    """Return a file's header; without names for a file that is empty.

    Raises SourceMalformed for one that cannot name columns, SourceUnreadable.
    """
    text = _start(file, source)
    if not source.header:
        return Header(declared, _line_end(text, source))
    names = _parsed(file, text, source)
    _check(file, names, source, declared)
    return Header(names, _line_end(text, source))


@contextmanager
def opened(file: FoundFile) -> Iterator[IO[bytes]]:
    """Open a file, unpacked. Raises SourceUnreadable."""
    try:
        with pa.input_stream(str(file.location), compression="detect") as stream:
            yield stream
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(file.path, str(error)) from error


def decoder(source: FilesSource) -> codecs.IncrementalDecoder:
    """Return what turns a file's bytes into text and stops at bytes that are none."""
    encoding = "utf-8-sig" if source.java_encoding == "UTF-8" else source.encoding
    return codecs.getincrementaldecoder(encoding)("strict")


def not_decoded(file: FoundFile, source: FilesSource, error: UnicodeDecodeError) -> SourceMalformed:
    """Return the error of a file in another encoding."""
    return SourceMalformed(
        file.path, f"it is not {source.encoding}: {error}", "Set source: {encoding: …}, or convert the file."
    )


def _start(file: FoundFile, source: FilesSource) -> str:
    if file.size == 0:
        return ""
    with opened(file) as stream:
        start = stream.read(_LIMIT)
    try:
        # Cut in the middle of a character, the last one is left for later.
        return decoder(source).decode(start, final=len(start) < _LIMIT)
    except UnicodeDecodeError as error:
        raise not_decoded(file, source, error) from error


def _parsed(file: FoundFile, text: str, source: FilesSource) -> tuple[str, ...]:
    if not source.multi_line:
        # Spark's header is the first line that is not blank, wherever quotes begin and end.
        text = next((line for line in _LINE_END.split(text) if line.strip()), "")
    try:
        lines = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=source.delimiter,
            quotechar=source.quote or None,
            quoting=csv.QUOTE_MINIMAL if source.quote else csv.QUOTE_NONE,
        )
        return next((tuple(row) for row in lines if row), ())
    except csv.Error as error:
        raise SourceMalformed(file.path, f"its header cannot be read: {error}") from error


def _check(file: FoundFile, names: tuple[str, ...], source: FilesSource, declared: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for index, name in enumerate(names, start=1):
        if "\0" in name:
            raise SourceMalformed(
                file.path, "its header holds zero bytes, as UTF-16 does", "Set source: {encoding: UTF-16}."
            )
        if not name.strip():
            raise SourceMalformed(file.path, f"column {index} of its header has no name")
        if name.lower() in seen:
            raise SourceMalformed(
                file.path, f'its header names column "{name}" twice (upper and lower case are one)'
            )
        seen[name.lower()] = name
    if len(names) == 1 and names[0] not in declared:
        _check_delimiter(file, names[0])


def _check_delimiter(file: FoundFile, name: str) -> None:
    for other in _OTHER_DELIMITERS:
        if other in name:
            raise SourceMalformed(
                file.path,
                f'its header is one column, "{name}"',
                f'Set source: {{delimiter: "{_written(other)}"}}. If it is one column indeed, declare it '
                f"in columns:.",
            )


def _written(delimiter: str) -> str:
    return "\\t" if delimiter == "\t" else delimiter


def _line_end(text: str, source: FilesSource) -> str:
    if source.quote:
        text = re.sub(Grammar.of(source).quoted, "", text)
    found = _LINE_END.search(text)
    return found[0] if found else "\n"
