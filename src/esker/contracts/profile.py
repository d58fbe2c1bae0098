"""Look at real rows: what the values of each column have in common.

Two passes over the rows, however many columns there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.personal import CARD, VALUES, Guess, guess
from esker.project.types import Column, Decimal, Plain, quoted

_FEW = 20
"""A column with no more different values than this may be a set of values."""
_REPEATED = 10
"""Each value of a set stands there so often, on average."""
_ENOUGH = 20
"""Of fewer rows than these, all values differ by chance."""
_EXAMPLES = 3
_LONGEST = 60
"""Longer values are no examples."""
_SAMPLE = 1000


@dataclass(frozen=True)
class ColumnProfile:
    """What the values of one column have in common."""

    column: Column
    rows: int
    filled: int
    is_unique: bool = False
    """All rows have a value, each another one; False for few rows, where that means nothing."""
    values: tuple[Any, ...] = ()
    """All values, where they are few."""
    examples: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None
    longest: int | None = None
    personal: Guess | None = None

    @property
    def is_required(self) -> bool:
        return self.rows > 0 and self.filled == self.rows


@dataclass(frozen=True)
class _Counted:
    filled: int
    distinct: int
    low: Any
    high: Any
    longest: int | None
    shares: dict[str, float] = field(default_factory=dict)


def profile(frame: DataFrame, columns: Sequence[Column]) -> list[ColumnProfile]:
    """Return the profile of each column of a frame whose values have these types."""
    rows, counted = _counted(frame, columns)
    closer = _closer(frame, columns, rows, counted)
    examples = _examples(frame, columns)
    profiles = []
    for column in columns:
        seen, (distinct, values) = counted[column.name], closer.get(column.name, (None, ()))
        profiles.append(
            ColumnProfile(
                column,
                rows,
                seen.filled,
                is_unique=distinct == rows,
                values=tuple(sorted(values)) if _is_set(seen.filled, values) else (),
                examples=examples.get(column.name, ()),
                low=seen.low,
                high=seen.high,
                longest=seen.longest,
                personal=guess(column.name, seen.shares),
            )
        )
    return profiles


def _counted(frame: DataFrame, columns: Sequence[Column]) -> tuple[int, dict[str, _Counted]]:
    """First pass: how many values there are, how many different ones about, and what they look like."""
    asked: list[Expression] = [F.count(F.lit(1)).alias("rows")]
    for index, column in enumerate(columns):
        value = F.col(quoted(column.name))
        asked.append(F.count(value).alias(f"{index} filled"))
        if not _is_plain(column):
            continue
        asked.append(F.approx_count_distinct(value, 0.02).alias(f"{index} distinct"))
        asked += [F.min(value).alias(f"{index} low"), F.max(value).alias(f"{index} high")]
        if column.type == Plain("string"):
            asked.append(F.max(F.char_length(value)).alias(f"{index} longest"))
        if column.type in (Plain("string"), Plain("bigint")):
            # Whole numbers may be cards; of other kinds few are written without a sign.
            text = value.cast("string")
            asked += [F.count_if(_looks(text, kind, p)).alias(f"{index} {kind}") for kind, p in VALUES]
    found = frame.agg(*asked).first()
    assert found is not None
    told = found.asDict()
    counted = {}
    for index, column in enumerate(columns):
        filled = told[f"{index} filled"]
        shares = {
            kind: told[f"{index} {kind}"] / filled
            for kind, _ in VALUES
            if filled and f"{index} {kind}" in told
        }
        counted[column.name] = _Counted(
            filled,
            told.get(f"{index} distinct", 0),
            told.get(f"{index} low"),
            told.get(f"{index} high"),
            told.get(f"{index} longest"),
            shares,
        )
    return told["rows"], counted


def _looks(text: Expression, kind: str, pattern: str) -> Expression:
    """Return whether a value looks like a kind of personal data."""
    looks = text.rlike(pattern)
    return (
        looks & F.call_function("luhn_check", F.regexp_replace(text, "[ -]", "")) if kind == CARD else looks
    )


def _closer(
    frame: DataFrame, columns: Sequence[Column], rows: int, counted: dict[str, _Counted]
) -> dict[str, tuple[int | None, tuple[Any, ...]]]:
    """Second pass: exact numbers for columns that may be unique, and the values of those with few."""
    asked = []
    for index, column in enumerate(columns):
        seen, value = counted[column.name], F.col(quoted(column.name))
        if rows >= _ENOUGH and seen.filled == rows and seen.distinct >= rows * 0.9 and _may_identify(column):
            asked.append(F.count_distinct(value).alias(f"{index} distinct"))
        if 0 < seen.distinct <= _FEW * 1.2 and column.type in (Plain("string"), Plain("boolean")):
            asked.append(F.collect_set(value).alias(f"{index} values"))
    if not asked:
        return {}
    found = frame.agg(*asked).first()
    assert found is not None
    told = found.asDict()
    return {
        column.name: (told.get(f"{index} distinct"), tuple(told.get(f"{index} values") or ()))
        for index, column in enumerate(columns)
    }


def _examples(frame: DataFrame, columns: Sequence[Column]) -> dict[str, tuple[Any, ...]]:
    """Return some values of each column with plain values, from the first rows."""
    plain = [column.name for column in columns if _is_plain(column)]
    if not plain:
        return {}
    rows = frame.select(*(quoted(name) for name in plain)).limit(_SAMPLE).collect()
    found = {}
    for index, name in enumerate(plain):
        values = dict.fromkeys(row[index] for row in rows if row[index] is not None)
        found[name] = tuple(value for value in values if len(str(value)) <= _LONGEST)[:_EXAMPLES]
    return found


def _is_set(filled: int, values: tuple[Any, ...]) -> bool:
    # One value is no choice.
    if not 1 < len(values) <= _FEW or any(isinstance(value, bool) for value in values):
        return False
    return filled >= _REPEATED * len(values)


def _is_plain(column: Column) -> bool:
    return isinstance(column.type, Plain | Decimal) and column.type != Plain("binary")


def _may_identify(column: Column) -> bool:
    """Tell whether values of this type are used as keys: measures happen to differ, too."""
    return column.type in (Plain("string"), Plain("int"), Plain("bigint"))
