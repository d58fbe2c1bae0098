"""Go through an XML file from its first byte to its last, by this process, about 30 MB a second."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from esker.errors import SourceMalformed
from esker.sources.files.csv_header import opened
from esker.sources.files.found import FoundFile

_CHUNK = 1 << 20


class _Refused(Exception):
    """Something that Spark would read otherwise; says what, and what to do."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


def check_document(file: FoundFile, row_tag: str) -> None:
    """Raise SourceMalformed for a file that is no whole document, or whose rows have another name."""
    rows, similar = 0, ""

    def started(name: str, _: Any) -> None:
        nonlocal rows, similar
        if name == row_tag:
            rows += 1
        elif not rows and name.rpartition(":")[2].lower() == row_tag.rpartition(":")[2].lower():
            similar = name

    def declared(name: str, *_: Any) -> None:
        raise _Refused(
            f'it declares an entity "{name}", which Spark does not put in',
            "Write out what entities stand for.",
        )

    parser = expat.ParserCreate()
    parser.StartElementHandler = started
    parser.EntityDeclHandler = declared
    try:
        with opened(file) as stream:
            while data := stream.read(_CHUNK):
                parser.Parse(data, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise SourceMalformed(
            file.path, f"{place}: {expat.ErrorString(error.code)}", "Write the file anew, whole."
        ) from error
    except _Refused as error:
        raise SourceMalformed(file.path, error.why, error.remedy) from error
    if not rows and similar:
        raise SourceMalformed(
            file.path,
            f'it has no element "{row_tag}", but "{similar}"',
            f"Set source: {{row_tag: {similar}}}: names count letter by letter, with what is before a colon.",
        )
