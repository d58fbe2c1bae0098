"""Fit rows to the columns of a table, strictly, in one pass.

Nothing becomes null silently: a value that cannot be read as its column's type, a missing required
value and a record that cannot be parsed each leave a reason in words in the column BAD.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.evolution import find
from esker.engine.compat import try_cast
from esker.project.types import (
    Array,
    Column,
    Decimal,
    Map,
    Plain,
    Struct,
    Type,
    columns_from_json,
    ddl,
    quoted,
)

BAD = "_esker_bad"
"""Column of a fitted frame: why the row is bad, in words; null for a good row."""

_SHOWN_CHARACTERS = 200

_FLOATING = {"float": (6, 1.17549435e-38), "double": (15, 2.2250738585072014e-308)}
"""How many digits always come back, and the least number with all its digits."""


def fit(
    frame: DataFrame,
    columns: tuple[Column, ...],
    *,
    malformed: str,
    origin: str,
    keep: tuple[str, ...] = (),
) -> DataFrame:
    """Return the frame's rows as these columns, with BAD beside them where a row can be bad at all.

    `malformed` names the column that says why a record could not be parsed, `origin` the one that says
    where the row came from; a frame may lack both. Columns of `keep` are carried along.
    """
    sent = columns_from_json(frame.schema.jsonValue())
    fitted: list[Expression] = []
    reasons: list[Expression] = []
    if find(sent, malformed):
        reasons.append(F.col(malformed))
    for column in columns:
        incoming = find(sent, column.name)
        if incoming is None:
            value = F.lit(None).cast(ddl(column.type))
        else:
            value, reason = _fitted(F.col(quoted(incoming.name)), incoming.type, column.type, column.name)
            reasons += [reason] if reason is not None else []
        if column.required:
            missing = F.lit(f'column "{column.name}" is required and has no value')
            reasons.append(F.when(value.isNull(), missing))
        fitted.append(value.alias(column.name))
    if reasons:
        reason = told = F.coalesce(*reasons)
        if find(sent, origin):
            # The file's name is put in front for bad rows only: cutting it from the path costs time.
            told = F.concat(F.element_at(F.split(F.col(origin), "/"), -1), F.lit(": "), reason)
        fitted.append(F.when(reason.isNotNull(), told).alias(BAD))
    return frame.select(*fitted, *keep)


def _fitted(value: Expression, sent: Type, wanted: Type, path: str) -> tuple[Expression, Expression | None]:
    """Return a value as another type, and the reason when it is none; no reason where it always fits."""
    if sent == wanted:
        return value, None
    match sent, wanted:
        case Plain("string"), Plain() | Decimal():
            return _parsed(value, wanted, path)
        case Struct(), Struct(fields):
            inner, reasons = [], []
            for field in fields:
                have = find(sent.fields, field.name)
                if have is None:
                    part: Expression = F.lit(None).cast(ddl(field.type))
                else:
                    part, reason = _fitted(
                        value.getField(have.name), have.type, field.type, f"{path}.{field.name}"
                    )
                    reasons += [reason] if reason is not None else []
                inner.append(part.alias(field.name))
            return F.when(value.isNotNull(), F.struct(*inner)), F.coalesce(*reasons) if reasons else None
        case Array(have_element), Array(want_element):
            each = F.transform(value, lambda item: _fitted(item, have_element, want_element, path)[0])
            return each, _first_reason(value, have_element, want_element, path)
        case Map(have_key, have_value), Map(want_key, want_value):
            each = F.transform_values(value, lambda _, item: _fitted(item, have_value, want_value, path)[0])
            each = F.transform_keys(each, lambda key, _: _fitted(key, have_key, want_key, path)[0])
            return each, _either(
                _first_reason(F.map_keys(value), have_key, want_key, path),
                _first_reason(F.map_values(value), have_value, want_value, path),
            )
    return value.cast(ddl(wanted)), None


def _first_reason(values: Expression, sent: Type, wanted: Type, path: str) -> Expression | None:
    """Return the reason of the first value of a list that does not fit."""
    if _fitted(F.lit(None).cast(ddl(sent)), sent, wanted, path)[1] is None:
        return None
    reasons = F.transform(values, lambda item: _reason(item, sent, wanted, path))
    return F.get(F.filter(reasons, lambda reason: reason.isNotNull()), F.lit(0))


def _reason(value: Expression, sent: Type, wanted: Type, path: str) -> Expression:
    reason = _fitted(value, sent, wanted, path)[1]
    return F.lit(None).cast("string") if reason is None else reason


def _either(one: Expression | None, other: Expression | None) -> Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return F.coalesce(one, other)


def _parsed(text: Expression, kind: Plain | Decimal, path: str) -> tuple[Expression, Expression]:
    """Return a text as a type, and the reason when it is none."""
    given = F.when(F.trim(text) != "", text)
    value = try_cast(given, ddl(kind))
    lost = value.isNull()
    if isinstance(kind, Decimal):
        # A cast rounds silently.
        lost = lost | (_digits(given) != _digits(value.cast("string")))
    elif kind == Plain("date"):
        # A cast drops a time of day silently.
        lost = lost | ~F.trim(given).rlike(r"^[+-]?\d{1,7}-\d{1,2}-\d{1,2}$")
    elif kind in (Plain("timestamp"), Plain("timestamp_ntz")):
        # A cast takes 12:30 for today, drops a zone that the type has no room for, and cuts digits.
        zone = r"(\s*(Z|[+-]\d.*|[A-Za-z].*))?" if kind == Plain("timestamp") else ""
        time = rf"[T ]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d{{1,6}}0*)?)?{zone}"
        lost = lost | ~F.trim(given).rlike(rf"^[+-]?\d{{4,6}}-\d{{1,2}}-\d{{1,2}}({time})?$")
    elif isinstance(kind, Plain) and kind.name in _FLOATING:
        lost = lost | _is_rounded(given, value, *_FLOATING[kind.name])
        # Java reads 1d and 1f as numbers.
        lost = lost | F.trim(given).rlike(r"\d[dDfF]$")
    reason = F.concat(
        F.lit(f'column "{path}": "'), F.substring(given, 1, _SHOWN_CHARACTERS), F.lit(f'" is no {kind}')
    )
    return value, F.when(given.isNotNull() & F.coalesce(lost, F.lit(True)), reason)


def _is_rounded(given: Expression, value: Expression, sure: int, least: float) -> Expression:
    """Tell whether a floating number is another than the text says.

    A number with few digits always comes back as it was written: 0.1 is no loss, though no double is
    exactly that. One with more digits must come back digit by digit. Infinity and zero are right only if
    they are written so, and next to zero digits are lost whatever their number.
    """
    is_doubtful = (F.length(given) > sure) | (F.abs(value) < least) | (F.abs(value) == float("inf"))
    is_number = given.rlike(r"\d")
    return is_doubtful & is_number & (_digits(given) != _digits(value.cast("string")))


def _digits(number: Expression) -> Expression:
    """Return the digits of a number written as text, without zeros at either end, point and exponent."""
    plain = F.translate(F.substring_index(F.lower(number), "e", 1), "+-. \t", "")
    return F.trim(plain, F.lit("0"))
