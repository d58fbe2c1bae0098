"""Patterns that Arrow may look at in the place of Java.

Rules mean patterns as Java does; Arrow has RE2. The two differ in what a dot, an end of line, a space or a
repeated quantifier is. What is written here for RE2 matches no text that Java's pattern does not match; of a
pattern for which that is not sure nothing is written.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

_ALONE = frozenset(string.ascii_letters + string.digits + " _-@/:,;#%&=!~'\"<>")
"""Characters that stand for themselves, in both."""
_ESCAPED = frozenset(r"\.^$|?*+()[]{}-/@_: ")
"""Characters that stand for themselves behind a backslash. Of others, Java refuses letters."""
_KINDS = frozenset("dwDW")
"""Of ASCII, in both. A space (`\\s`) is in Java also a vertical tab."""
_CONTROLS = frozenset("tnrf")
_IN_CLASS = _ALONE - frozenset("-&") | frozenset(".*+?()|$")
"""Two ampersands, brackets and a caret mean something in Java's classes."""
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
"""What a dot is in Java; in RE2 it is everything but \\n."""
_TIMES = re.compile(r"\{\d{1,3}(,(\d{1,3})?)?\}|[*+?]")


@lru_cache(maxsize=512)
def as_re2(pattern: str) -> str | None:
    """Return a pattern for RE2 whose every match is one of Java's, or None if there is none for sure."""
    try:
        return _Reader(pattern).whole()
    except _Unsure:
        return None


class _Unsure(Exception):
    """The pattern has a part of which it is not known whether both mean the same by it."""


class _Reader:
    """Reads a pattern from left to right and writes it for RE2."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._written: list[str] = []

    def whole(self) -> str:
        depth = 0
        while self._at < len(self._pattern):
            character = self._next()
            if character in "^$|":
                # RE2's end of a text is also one for Java, which takes the place before a last line end, too.
                self._written.append(character)
                continue
            if character == "(":
                depth += 1
                self._group()
                continue
            if character == ")":
                depth -= 1
                if depth < 0:
                    raise _Unsure
                self._written.append(")")
            elif character == ".":
                self._written.append(_DOT)
            elif character == "[":
                self._written.append(self._class())
            elif character == "\\":
                self._written.append(self._escape())
            elif character in _ALONE:
                self._written.append(character)
            else:
                raise _Unsure
            self._quantifier()
        if depth:
            raise _Unsure
        return "".join(self._written)

    def _next(self) -> str:
        if self._at == len(self._pattern):
            raise _Unsure
        character = self._pattern[self._at]
        self._at += 1
        return character

    def _takes(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) * found
        return found

    def _group(self) -> None:
        if not self._takes("?:") and self._takes("?"):
            raise _Unsure  # flags, names, looks ahead and behind
        self._written.append("(?:")

    def _quantifier(self) -> None:
        """Take how often the part before may be there. Whether it is greedy changes no answer."""
        found = _TIMES.match(self._pattern, self._at)
        if found is None:
            return
        self._at = found.end()
        self._written.append(found[0])
        self._takes("?")
        if self._pattern[self._at : self._at + 1] in tuple("+*?{"):
            raise _Unsure  # Java's `++` gives nothing back; others one of the two refuses

    def _escape(self) -> str:
        character = self._next()
        if character == "z" and self._at == len(self._pattern):
            return r"\z"
        if character in _KINDS or character in _CONTROLS or character in _ESCAPED:
            return f"\\{character}" if character not in " @_:/" else character
        raise _Unsure

    def _class(self) -> str:
        """Take a class of characters: single ones, ranges, and kinds."""
        written = ["[^" if self._takes("^") else "["]
        if self._takes("-"):
            written.append(r"\-")
        while not self._takes("]"):
            if self._takes("-"):
                if not self._takes("]"):
                    raise _Unsure
                written.append(r"\-")
                break
            first = self._member()
            if first[0] == "kind" or not self._is_range():
                written.append(first[1])
                continue
            self._at += 1
            last = self._member()
            if last[0] == "kind":
                raise _Unsure
            written.append(f"{first[1]}-{last[1]}")
        if len(written) == 1:
            raise _Unsure
        return "".join([*written, "]"])

    def _is_range(self) -> bool:
        ahead = self._pattern[self._at : self._at + 2]
        return ahead.startswith("-") and ahead != "-]"

    def _member(self) -> tuple[str, str]:
        """Take one member of a class: whether it is one character, and as RE2 writes it."""
        character = self._next()
        if character == "\\":
            escaped = self._next()
            if escaped in _KINDS:
                return "kind", f"\\{escaped}"
            if escaped in _CONTROLS:
                return "one", f"\\{escaped}"
            if escaped in _ESCAPED:
                return "one", _written_out(escaped)
            raise _Unsure
        if character in _IN_CLASS:
            return "one", _written_out(character)
        raise _Unsure


def _written_out(character: str) -> str:
    """Return one character so that nothing is special about it."""
    return character if character.isalnum() else f"\\x{ord(character):02x}"
