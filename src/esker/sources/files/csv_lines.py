"""Look for lines of a CSV file that Spark would read as something else than they say."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.engine.compat import is_valid_utf8
from esker.project.sources import FilesSource
from esker.sources.files.csv_grammar import Grammar
from esker.sources.files.lines import Flaw

UNCLOSED, STRAY, QUOTED_NULL = "unclosed", "stray", "quoted null"
_NOT_UTF8, _BLANK, _ZERO = "not UTF-8", "blank", "zero"

FLAWS = {
    UNCLOSED: Flaw(
        "a quote is not closed",
        "If values hold line breaks, set source: {multi_line: true}. If quotes mean nothing in these files, "
        'set source: {quote: ""}.',
    ),
    STRAY: Flaw(
        "text follows a closing quote",
        "Double the quotes that belong to a value. If quotes mean nothing in these files, set "
        'source: {quote: ""}.',
    ),
    QUOTED_NULL: Flaw(
        "the text of null_value stands in quotes, and cannot be told from null",
        "Let another text stand for null, in the file and as null_value.",
    ),
    _NOT_UTF8: Flaw(
        "it is not UTF-8", "Set source: {encoding: windows-1252} or the like, or convert the file."
    ),
    _BLANK: Flaw(
        "a line of blanks is a value or a row of empty values, and would be left out",
        "Put the blanks into quotes, remove the line, or set source: {multi_line: true}.",
    ),
    _ZERO: Flaw("a zero byte would be taken for a quote", "Remove it, or set source: {encoding: …}."),
}


def flaw_of(line: Expression, source: FilesSource, *, blanks_count: bool) -> Expression:
    """Return the key in FLAWS of what is wrong with a line; null for a good one.

    `blanks_count` says whether a line of blanks only holds a value.
    """
    flaws = []
    if source.java_encoding == "UTF-8":
        flaws.append(F.when(~is_valid_utf8(line), _NOT_UTF8))
    if source.quote:
        grammar = Grammar.of(source)
        kind = F.when(line.rlike(grammar.unclosed), UNCLOSED).otherwise(STRAY)
        # Most lines have no quote: they are done with at once.
        flaws.append(F.when(line.contains(source.quote) & ~line.rlike(grammar.record), kind))
        if source.null_value:
            flaws.append(F.when(line.rlike(grammar.quoted_text(source.null_value)), QUOTED_NULL))
    else:
        flaws.append(F.when(line.contains("\0"), _ZERO))
    if blanks_count:
        # What Java's trim() leaves nothing of.
        flaws.append(F.when(line.rlike(r"^[\x00-\x20]+$"), _BLANK))
    return F.coalesce(*flaws)
