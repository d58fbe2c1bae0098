"""Look for lines of JSON that Spark would read as something else than they say.

A line that is no JSON at all is left to the reader, which notices it: it is one bad row.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.engine.compat import is_rounded_json, is_strict_json, is_valid_utf8
from esker.sources.files.lines import Flaw

_NOT_UTF8, _MORE, _TWICE, _LAX, _SURROGATE, _ROUNDED = "not UTF-8", "more", "twice", "lax", "half", "rounded"

FLAWS = {
    _NOT_UTF8: Flaw("it is not UTF-8", "Convert the file to UTF-8: JSON has no other encoding."),
    _MORE: Flaw("something follows the object of a line", "Write one object a line, and nothing else."),
    _TWICE: Flaw("an object has one name twice", "Write each name once in an object."),
    _LAX: Flaw(
        "an object has one name twice, or it is written otherwise than JSON",
        "Write each name once, and names and texts in double quotes.",
    ),
    _SURROGATE: Flaw(
        "half a surrogate pair (\\ud800 to \\udfff) is no character",
        "Write the whole pair, or the character itself.",
    ),
    _ROUNDED: Flaw(
        "a number has more digits than Spark 3.5 reads",
        "Write it in quotes, or load it with Spark 4: neither loses a digit.",
    ),
}

_NO_NUMBER = r"(?<=[:\[,\s])[+-]?(?:NaN|INF|Infinity)(?=[\s,\]}])"
_ESCAPED = r"(?<!\\)(?:\\\\)*+\\u[dD]"
_HALF = (
    rf"{_ESCAPED}[89abAB][0-9a-fA-F]{{2}}(?!\\u[dD][c-fC-F][0-9a-fA-F]{{2}})"
    rf"|(?<!\\u[dD][89abAB][0-9a-fA-F]{{2}}){_ESCAPED}[c-fC-F][0-9a-fA-F]{{2}}"
)


def is_read(line: Expression, options: Mapping[str, str]) -> Expression:
    """Tell whether Spark reads a line, or its beginning, as an object or a list of objects."""
    found = F.from_json(line, "map<string,string>", dict(options))
    return found.isNotNull() | F.from_json(line, "array<map<string,string>>", dict(options)).isNotNull()


def flaw_of(line: Expression, options: Mapping[str, str]) -> Expression:
    """Return the key in FLAWS of what is wrong with a line; null for a good one.

    The line is put into a list whose last value nobody can guess. Only if it is one whole value, that
    last value is the second: Spark's parsers read one value and never look what follows.
    """
    last = secrets.token_hex(8)

    def listed(text: Expression) -> Expression:
        return F.concat(F.lit("["), text, F.lit(f',"{last}"]'))

    # Spark's reader takes some more for JSON (NaN, single quotes, what `options` allow), and so does this.
    values = F.from_json(listed(line), "array<string>", dict(options))
    is_lax = F.coalesce(F.get(values, F.lit(1)) == last, F.lit(False))
    names = F.map_keys(F.from_json(line, "map<string,string>", dict(options)))
    is_allowed = any(key.lower().startswith("allow") for key in options)
    suspicious = (
        F.when(~is_lax, F.when(is_read(line, options), _MORE))
        .when(F.size(names) > F.size(F.array_distinct(names)), _TWICE)
        .when(~F.lit(is_allowed) & ~is_strict_json(F.regexp_replace(line, _NO_NUMBER, "null")), _LAX)
    )
    return F.coalesce(
        F.when(~is_valid_utf8(line), _NOT_UTF8),
        F.when((F.trim(line) != "") & ~is_strict_json(line), suspicious),
        F.when(line.contains("\\u") & line.rlike(_HALF), _SURROGATE),
        F.when(is_rounded_json(line), _ROUNDED),
    )
