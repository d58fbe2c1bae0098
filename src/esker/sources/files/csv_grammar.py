"""How a CSV record is written, as regular expressions that Java and Python read alike.

Quantifiers are possessive: Java would otherwise descend a level for each character of a long value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from esker.project.sources import FilesSource

_BREAKS = r"\r\n"


@dataclass(frozen=True)
class Grammar:
    """RFC 4180 with the source's delimiter and quote.

    Two things are let through beside it: a quote inside a value that does not begin with one (`5" pipe`),
    and blanks behind a closing quote. Neither can be read in two ways.
    """

    delimiter: str
    quote: str
    """Empty when nothing is quoted."""

    @classmethod
    def of(cls, source: FilesSource) -> Grammar:
        return cls(source.delimiter, source.quote)

    @property
    def quoted(self) -> str:
        """A quoted value."""
        return f"{self._opened}{self._quote}"

    @property
    def record(self) -> str:
        """A whole record that stands on one line."""
        return f"^{self._field}(?:{self._delimiter}{self._field})*+$"

    @property
    def unclosed(self) -> str:
        """A line whose last value has an opening quote and no closing one."""
        return f"^(?:{self._field}{self._delimiter})*+{self._opened}$"

    def fields(self, line_end: str) -> str:
        """Values, each with what follows it, over any number of lines."""
        return f"(?:{self.last_field}(?:{self._delimiter}|{line_end}))*+"

    @property
    def last_field(self) -> str:
        """The value at the very end of a file."""
        return f"(?:{self._closed}|{self._bare(_BREAKS)})"

    @property
    def never_closed(self) -> str:
        """An opening quote, and no closing one up to the end."""
        return f"{self._opened}\\Z"

    def quoted_text(self, text: str) -> str:
        """A value that is this text in quotes."""
        before, after = f"(?:^|{self._delimiter}|[{_BREAKS}])", f"(?=$|{self._delimiter}|[{_BREAKS}])"
        return f"{before}{self._quote}{re.escape(text)}{self._quote}{self._blanks}{after}"

    @property
    def _field(self) -> str:
        return f"(?:{self._closed}|{self._bare()})"

    @property
    def _opened(self) -> str:
        return f"{self._quote}(?:[^{self._quote}]++|{self._quote}{self._quote})*+"

    @property
    def _closed(self) -> str:
        return f"{self.quoted}{self._blanks}"

    def _bare(self, beside: str = "") -> str:
        return f"(?!{self._quote})[^{self._delimiter}{beside}]*+"

    @property
    def _quote(self) -> str:
        # Univocity, Spark's parser, takes a zero byte for the quote where there is none.
        return re.escape(self.quote or "\0")

    @property
    def _delimiter(self) -> str:
        return re.escape(self.delimiter)

    @property
    def _blanks(self) -> str:
        blanks = "".join(blank for blank in " \t" if blank != self.delimiter)
        return f"[{blanks}]*+"
