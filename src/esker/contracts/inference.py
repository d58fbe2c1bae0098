"""Find out the types of columns that come as text.

One pass over the batch. A type is taken only if every value has it, and only if nothing is lost: `007`
stays text, and a column without any value gets no type at all, because whatever was guessed now might
refuse the first real value later.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import try_cast
from esker.project.types import Column, Plain, quoted

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("boolean", r"^(?i:true|false)$"),
    ("bigint", r"^-?(0|[1-9][0-9]{0,18})$"),
    # A double keeps 15 digits and exponents below 308: longer numbers stay text.
    ("double", r"^-?(?!(?:\.?[0-9]){16})(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$"),
    ("date", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    (
        "timestamp",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
        r"(Z|[+-][0-9]{2}:?[0-9]{2})?$",
    ),
)


def infer_columns(frame: DataFrame, names: Sequence[str]) -> tuple[Column, ...]:
    """Return the named text columns with the narrowest type that fits every value.

    Columns without a value in any row are left out. The empty text is a value, but tells no type: alone
    it makes a column of text, beside others it is nothing.
    """
    if not names:
        return ()
    tests = [
        F.max(_has(name, kind, pattern)).alias(f"{index}_{kind}")
        for index, name in enumerate(names)
        for kind, pattern in _PATTERNS
    ]
    filled = [F.count(F.col(quoted(name))).alias(f"{index}_filled") for index, name in enumerate(names)]
    row = frame.agg(*tests, *filled).first()
    assert row is not None
    columns = []
    for index, name in enumerate(names):
        if row[f"{index}_filled"]:
            # A test holds the worst value: 0 when every value has the type, else 1.
            fitting = (kind for kind, _ in _PATTERNS if row[f"{index}_{kind}"] == 0)
            columns.append(Column(name, Plain(next(fitting, "string"))))
    return tuple(columns)


def _value(name: str) -> Expression:
    column = F.col(quoted(name))
    return F.when(column != "", column)


def _has(name: str, kind: str, pattern: str) -> Expression:
    value = _value(name)
    fits = value.rlike(pattern) & try_cast(value, kind).isNotNull()
    return F.when(value.isNotNull(), F.when(fits, 0).otherwise(1))
