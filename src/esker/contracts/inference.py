"""Find out the types of columns that come as text.

One pass over the batch. A type is taken only if every value has it, and only if nothing is lost: `007`
stays text, and a column without any value gets no type at all, because whatever was guessed now might
refuse the first real value later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import try_cast
from esker.project.types import Column, Plain, quoted

_SHOWN_CHARACTERS = 60
PATTERNS: tuple[tuple[str, str], ...] = (
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
"""Types from the narrowest, and how a value of each is written; Java and Python read these alike."""


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
        for kind, pattern in PATTERNS
    ]
    filled = [F.count(F.col(quoted(name))).alias(f"{index}_filled") for index, name in enumerate(names)]
    row = frame.agg(*tests, *filled).first()
    assert row is not None
    columns = []
    for index, name in enumerate(names):
        if row[f"{index}_filled"]:
            # A test holds the worst value: 0 when every value has the type, else 1.
            fitting = (kind for kind, _ in PATTERNS if row[f"{index}_{kind}"] == 0)
            columns.append(Column(name, Plain(next(fitting, "string"))))
    return tuple(columns)


def _value(name: str) -> Expression:
    column = F.col(quoted(name))
    return F.when(column != "", column)


def _has(name: str, kind: str, pattern: str) -> Expression:
    value = _value(name)
    fits = value.rlike(pattern) & try_cast(value, kind).isNotNull()
    return F.when(value.isNotNull(), F.when(fits, 0).otherwise(1))


@dataclass(frozen=True)
class Misfit:
    """What keeps a column from having the type that most of its values have."""

    column: str
    kind: str
    """The type of the other values."""
    others: int
    count: int
    """How many values do not have it."""
    value: str | None
    """One of them; None where it is nobody's business."""
    origin: str | None
    """Where it stands: a file, if anybody knows."""
    line: int | None = None

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        place = f" ({self.origin}{line})" if self.origin else ""
        shown = f'"{self.value[:_SHOWN_CHARACTERS]}"' if self.value is not None else "one"
        because = f"{shown}{place}" if self.count == 1 else f"{self.count:,} values, such as {shown}{place}"
        others = "the other value is" if self.others == 1 else f"the {self.others:,} others are"
        return f'column "{self.column}" is text because of {because}; {others} of type {self.kind}'


def find_misfits(frame: DataFrame, names: Sequence[str], origin: str) -> list[Misfit]:
    """Return why columns of texts have no narrower type, where most of their values would.

    The column `origin` tells where a row comes from.
    """
    if not names:
        return []
    asked = [
        F.sum(_has(name, kind, pattern)).alias(f"{index}_{kind}")
        for index, name in enumerate(names)
        for kind, pattern in PATTERNS
    ]
    filled = [F.count(_value(name)).alias(f"{index}_filled") for index, name in enumerate(names)]
    row = frame.agg(*asked, *filled).first()
    assert row is not None
    found = {}
    for index, name in enumerate(names):
        # Of types that come equally close the first is the narrowest.
        count, place = min((row[f"{index}_{kind}"] or 0, at) for at, (kind, _) in enumerate(PATTERNS))
        if 0 < count < row[f"{index}_filled"] - count:
            found[name] = place, count, row[f"{index}_filled"] - count
    if not found:
        return []
    first = frame.agg(
        *(
            F.min(F.when(_has(name, *PATTERNS[place]) == 1, F.struct(_value(name), F.col(origin)))).alias(
                name
            )
            for name, (place, _, _) in found.items()
        )
    ).first()
    assert first is not None
    return [
        Misfit(name, PATTERNS[place][0], others, count, *first[name])
        for name, (place, count, others) in found.items()
    ]
