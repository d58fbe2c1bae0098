"""Follow the quotes of a CSV file whose values may hold line breaks, from its first byte to its last.

One quote that is never closed makes the rest of the file one value, and Spark says nothing. Which quote
opens and which closes is known only to who has read everything before, so no line can be judged alone; such
a file is read by one task anyhow. Here it is read by this process, about 100 MB a second.
"""

from __future__ import annotations

import re

from esker.errors import SourceMalformed
from esker.project.sources import FilesSource
from esker.sources.files.csv_grammar import Grammar
from esker.sources.files.csv_header import decoder, not_decoded, opened
from esker.sources.files.csv_lines import FLAWS, QUOTED_NULL, STRAY, UNCLOSED
from esker.sources.files.found import FoundFile
from esker.sources.files.lines import Flaw

_CHUNK = 1 << 22
_LONGEST = 1 << 28
_SHOWN_CHARACTERS = 100


def check_quotes(file: FoundFile, source: FilesSource, line_end: str) -> None:
    """Raise SourceMalformed where bytes are no text, a quote is not closed or text follows one, or a line
    ends otherwise than the first."""
    grammar = Grammar.of(source)
    fields = re.compile(grammar.fields(line_end))
    null = re.compile(grammar.quoted_text(source.null_value)) if source.null_value else None
    rest, line, is_last = "", 1, False
    with opened(file) as stream:
        decode = decoder(source).decode
        while not is_last:
            # As much again as is left: a value of any length is gone over a few times only.
            data = stream.read(max(_CHUNK, len(rest)))
            is_last = not data
            try:
                text = rest + decode(data, final=is_last)
            except UnicodeDecodeError as error:
                raise not_decoded(file, source, error) from error
            found = fields.match(text)
            end = found.end() if found else 0
            if null and (quoted := null.search(text, 0, end)):
                raise _error(
                    file, FLAWS[QUOTED_NULL], line + text.count(line_end, 0, quoted.end()), quoted[0]
                )
            rest, line = text[end:], line + text.count(line_end, 0, end)
            if not _is_begun(rest, grammar, is_last=is_last):
                raise _broken(file, grammar, line, rest)


def _is_begun(rest: str, grammar: Grammar, *, is_last: bool) -> bool:
    """Tell whether a text is a value, or may become one with what follows."""
    if re.fullmatch(grammar.last_field, rest):
        return True
    if is_last or len(rest) > _LONGEST:
        return False
    return rest.endswith("\r") or re.match(grammar.never_closed, rest) is not None


def _broken(file: FoundFile, grammar: Grammar, line: int, rest: str) -> SourceMalformed:
    if re.match(grammar.never_closed, rest):
        flaw = Flaw(FLAWS[UNCLOSED].why, "Close it, or double a quote that belongs to the value.")
    elif re.match(grammar.quoted, rest):
        flaw = FLAWS[STRAY]
    else:
        flaw = Flaw("it ends otherwise than the first line", "Let all lines of a file end alike.")
    return _error(file, flaw, line, rest[:_SHOWN_CHARACTERS])


def _error(file: FoundFile, flaw: Flaw, line: int, text: str) -> SourceMalformed:
    return SourceMalformed(file.path, f"line {line}: {flaw.why}: {text.strip()}", flaw.remedy)
