"""Rows that surely keep to all rules, found in this process.

A Spark job takes longer than all else that a small batch needs. So a batch that lies here as Arrow is looked
at in Arrow first. The answer is "all of them are good, for sure" or none: then Spark looks, counts and says
what is wrong. What a rule means is what Spark means by it; wherever Arrow might mean something else, nothing
is sure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from operator import ge, gt, le, lt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esker.contracts.arrow_pattern import as_re2
from esker.contracts.rules import RowRules
from esker.project.contract.model import ColumnTest, RowRule

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_EXACT = 2**53
"""Up to here every whole number is a double."""
_DIGITS = 38
"""More than so many digits Spark cuts off before it compares."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def surely_keep(rows: pa.Table, rules: RowRules) -> bool:
    """Tell whether all rows keep to all rules, warnings included. False where that is not sure."""
    if rules.related:
        return False
    return all(_surely_keeps(rows, rule) for rule in rules.conditions)


def _surely_keeps(rows: pa.Table, rule: RowRule) -> bool:
    names = {name.lower(): name for name in rows.column_names}
    if rule.test is None or rule.column is None or rule.column.lower() not in names:
        return False
    column = rows.column(names[rule.column.lower()])
    try:
        return _TESTS[rule.test.kind](column, rule.test)
    except pa.ArrowException:
        return False


def _is_bounded(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    sign, bound = test.value
    if isinstance(bound, bool):
        return False
    kind, types = column.type, pa.types
    if types.is_date32(kind) and test.logical == "date":
        return _is_within(column.cast(pa.int32()), sign, _day(bound))
    if types.is_timestamp(kind) and test.logical == "timestamp":
        is_moment = kind.unit == "us" and kind.tz == "UTC"
        return bool(is_moment and _is_within(column.cast(pa.int64()), sign, _microseconds(bound)))
    if not isinstance(bound, int | float):
        return False
    if types.is_integer(kind):
        # Of a number that no value of the column can be, Spark says that missing values break it.
        is_possible = abs(bound) < 2 ** (kind.bit_width - 1)
        return bool(is_possible) and _is_within(column, sign, _written(bound))
    if types.is_decimal128(kind):
        number = _written(bound)
        return number is not None and _fits(kind, number) and _is_within(column, sign, number)
    if types.is_floating(kind):
        is_exact = isinstance(bound, float) or abs(bound) <= _EXACT
        # Not a number is more than every number for Spark, and nothing at all for Arrow.
        has_nan = pc.any(pc.is_nan(column)).as_py()
        return is_exact and not has_nan and _is_within(column, sign, bound)
    return False


def _is_within(column: pa.ChunkedArray, sign: str, bound: Any) -> bool:
    """Tell whether all values that are there compare so with a bound; False without a bound."""
    if bound is None:
        return False
    extremes = pc.min_max(column)
    value = extremes["min" if sign.startswith(">") else "max"].as_py()
    return bool(value is None or _COMPARE[sign](value, bound))


def _written(bound: float) -> Number | None:
    """Return a number of a contract as Spark reads it: exactly, unless it is written with an exponent."""
    text = repr(bound)
    return None if "e" in text else Number(text)


def _fits(kind: pa.DataType, number: Number) -> bool:
    """Tell whether Spark compares a decimal with a number without a digit less."""
    parts = number.as_tuple()
    assert isinstance(parts.exponent, int)
    scale = max(-parts.exponent, 0)
    whole = max(len(parts.digits) - scale, 1)
    return bool(max(kind.precision - kind.scale, whole) + max(kind.scale, scale) <= _DIGITS)


def _day(bound: Any) -> int | None:
    """Return a date of a contract as days since 1970."""
    if not _DATE.fullmatch(str(bound)):
        return None
    try:
        return (date.fromisoformat(str(bound)) - _EPOCH.date()).days
    except ValueError:
        return None


def _microseconds(bound: Any) -> int | None:
    """Return a moment of a contract as microseconds since 1970."""
    if not _MOMENT.fullmatch(str(bound)):
        return None
    try:
        moment = datetime.fromisoformat(str(bound))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _is_between(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    low, high = test.value
    if not pa.types.is_integer(column.type):
        return False
    return _is_within(column, ">=", low) and _is_within(column, "<=", high)


def _has_length(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    sign, number = test.value
    if not pa.types.is_string(column.type):
        return False
    # A character has one to four bytes.
    sure = number if sign == "<=" else 4 * number
    if _is_within(pc.binary_length(column), sign, sure):
        return True
    return _is_utf8(column) and _is_within(pc.utf8_length(column), sign, number)


def _is_one_of(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    values = _values(column, test)
    return values is not None and bool(_all(pc.is_in(column.drop_null(), value_set=values)))


def _is_not_missing(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    if column.null_count:
        return False
    if not test.value:
        return True
    values = _values(column, test)
    return values is not None and not pc.any(pc.is_in(column, value_set=values)).as_py()


def _values(column: pa.ChunkedArray, test: ColumnTest) -> pa.Array | None:
    """Return the values of a test as the column's type; None where Spark might turn one into another."""
    kind, given = column.type, test.value
    if pa.types.is_string(kind) and all(isinstance(value, str) for value in given):
        return pa.array(given, kind)
    is_whole = all(isinstance(value, int) and not isinstance(value, bool) for value in given)
    if pa.types.is_integer(kind) and is_whole and all(-(2**31) <= value < 2**31 for value in given):
        return pa.array(given, kind)
    return None


def _is_there(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    return not column.null_count


def _matches(column: pa.ChunkedArray, test: ColumnTest) -> bool:
    pattern = as_re2(test.value)
    if pattern is None or not pa.types.is_string(column.type) or not _is_utf8(column):
        return False
    return _all(pc.match_substring_regex(column.drop_null(), pattern))


def _is_utf8(column: pa.ChunkedArray) -> bool:
    """Tell whether all texts are valid UTF-8: Arrow does not check the bytes that a caller hands over."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _all(found: pa.ChunkedArray) -> bool:
    return bool(pc.all(found, min_count=0).as_py())


_TESTS: dict[str, Callable[[pa.ChunkedArray, ColumnTest], bool]] = {
    "bound": _is_bounded,
    "between": _is_between,
    "length": _has_length,
    "one_of": _is_one_of,
    "not_missing": _is_not_missing,
    "there": _is_there,
    "pattern": _matches,
}
