"""Cut a text into SQL statements: at each `;` that stands in no quotes and no comment."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One statement, and where it stands in its text (both from 1)."""

    text: str
    line: int
    column: int


_PIECES = re.compile(
    r"""--[^\n]*"""
    r"""|/\*"""
    r"""|[rR]'[^']*'|[rR]"[^"]*\""""  # raw texts: a backslash is a backslash
    r"""|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
    r"""|`(?:``|[^`])*`"""
    r"""|\w+"""  # so that the r of a word does not begin a raw text
    r"""|;""",
    re.DOTALL,
)


def statements(text: str) -> list[Statement]:
    """Return the statements of a text, without those that hold only comments and space."""
    found: list[Statement] = []
    start = at = 0
    has_words = False
    while piece := _PIECES.search(text, at):
        has_words |= bool(text[at : piece.start()].strip())
        token, at = piece[0], piece.end()
        if token == "/*":
            at = _end_of_comment(text, at)
        elif token == ";":
            if has_words:
                found.append(_statement(text, start, piece.start()))
            start, has_words = at, False
        elif not token.startswith("--"):
            has_words = True
    if has_words or text[at:].strip():
        found.append(_statement(text, start, len(text)))
    return found


def _end_of_comment(text: str, at: int) -> int:
    """Return where a comment ends; comments may stand inside each other, as in Spark."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(text)


def _statement(text: str, start: int, end: int) -> Statement:
    begin = start + len(text[start:end]) - len(text[start:end].lstrip())
    before = text[:begin]
    return Statement(text[begin:end].rstrip(), before.count("\n") + 1, begin - (before.rfind("\n") + 1) + 1)
