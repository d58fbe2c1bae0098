"""A JSON document, written anew as JSON lines: each element of its list on a line, or the object itself.

Spark reads a document as one value in memory, drops what follows it, and cannot say which element is
broken. The elements are found by their brackets, a few megabytes at a time; what is in them is looked at
line by line, as with JSON lines.
"""

from __future__ import annotations

import re
from typing import IO

_CHUNK = 1 << 22
_TEXT = rb'"(?:[^"\\\n\r]++|\\[^\n\r])*+"'
_FLAT = rb'[\[{](?:[^"\[\]{}]++|' + _TEXT + rb")*+[\]}]"
_DEEP = rb'[\[{](?:[^"\[\]{}]++|' + _TEXT + b"|" + _FLAT + rb")*+[\]}]"
"""Two levels at once: one step for each bracket takes ten times as long."""
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _TEXT + b"|" + _DEEP + rb")*+")
_TO_COMMA = re.compile(rb'(?:[^"\[\]{},]++|' + _TEXT + b"|" + _DEEP + rb")*+")
_OPEN_TEXT = re.compile(rb'"(?:[^"\\\n\r]++|\\[^\n\r])*+\\?\Z')
_BLANKS = b" \t\r\n"
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_MARK = b"\xef\xbb\xbf"
_SHOWN = 60


class NoDocument(Exception):
    """Bytes are no JSON document; says why."""


def write_lines(document: IO[bytes], lines: IO[bytes]) -> None:
    """Write a document's elements, one a line. Raises NoDocument where they do not end as they begin."""
    _Splitter(document, lines).split()


class _Splitter:
    """Goes through a document once."""

    def __init__(self, document: IO[bytes], lines: IO[bytes]) -> None:
        self._document, self._lines = document, lines
        self._buffer, self._at, self._passed = b"", 0, 0
        self._is_blank = True
        """Nothing of the present element has been seen."""

    def split(self) -> None:
        first = self._skip_blanks(is_start=True)
        if first is None:
            return  # an empty file: no rows
        if first == b"{":
            self._element(b"")
        elif first == b"[":
            self._at += 1
            self._list()
        else:
            raise NoDocument(f"it begins with {self._shown()}, which is neither a list nor an object")
        if self._skip_blanks() is not None:
            raise NoDocument(f"something follows its end, at byte {self._place}: {self._shown()}")

    def _list(self) -> None:
        if self._skip_blanks() == b"]":
            self._at += 1
            return
        while self._element(b",]") == b",":
            pass

    def _element(self, ends: bytes) -> bytes:
        """Write one element and return the byte behind it, one of `ends`; without these it ends with the
        bracket that it began with."""
        depth = 0
        self._is_blank = True
        if not ends:
            self._write(self._at + 1)
            depth = 1
        while True:
            found = (_TO_BRACKET if depth else _TO_COMMA).match(self._buffer, self._at)
            assert found is not None  # it matches nothing at all too
            self._write(found.end())
            byte = self._buffer[self._at : self._at + 1]
            if not byte or (byte == b'"' and _OPEN_TEXT.match(self._buffer, self._at)):
                self._more()
            elif byte == b'"':
                raise NoDocument(f"a text holds a line break, at byte {self._place}: {self._shown()}")
            elif depth == 0 and byte in ends:
                self._at += 1
                if self._is_blank:
                    raise NoDocument(
                        f"an element is missing before {byte.decode()}, at byte {self._place - 1}"
                    )
                self._lines.write(b"\n")
                return byte
            else:
                depth += 1 if byte in b"[{" else -1
                if depth < 0:
                    raise NoDocument(
                        f"a bracket closes what none opened, at byte {self._place}: {self._shown()}"
                    )
                self._write(self._at + 1)
                if depth == 0 and not ends:
                    self._lines.write(b"\n")
                    return b""

    @property
    def _place(self) -> int:
        """Where in the document it has come to."""
        return self._passed + self._at

    def _write(self, end: int) -> None:
        # A line break is a blank here: none is inside a text.
        part = self._buffer[self._at : end].translate(_ONE_LINE)
        self._is_blank = self._is_blank and not part.strip(_BLANKS)
        self._lines.write(part)
        self._at = end

    def _more(self) -> None:
        """Read on, or raise NoDocument at the end."""
        rest = self._buffer[self._at :]
        data = self._document.read(max(_CHUNK, len(rest)))
        if not data:
            raise NoDocument(
                f"it ends in the middle, after {self._place + len(rest)} bytes: it is not complete"
            )
        self._passed += self._at
        self._buffer, self._at = rest + data, 0

    def _skip_blanks(self, *, is_start: bool = False) -> bytes | None:
        """Return the next byte that is no blank, and stay before it; None at the end."""
        while True:
            rest = self._buffer[self._at :]
            if is_start and rest:
                rest, is_start = rest.removeprefix(_MARK), False
            kept = rest.lstrip(_BLANKS)
            self._at = len(self._buffer) - len(kept)
            if kept:
                return kept[:1]
            data = self._document.read(_CHUNK)
            if not data:
                return None
            self._passed += self._at
            self._buffer, self._at = data, 0

    def _shown(self) -> str:
        return self._buffer[self._at : self._at + _SHOWN].decode(errors="replace").strip()
