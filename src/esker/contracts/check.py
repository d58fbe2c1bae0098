"""Fit rows to the columns of a table, strictly, in one pass.

Nothing becomes null silently: a value that cannot be read as its column's type, a missing required
value and a record that cannot be parsed each leave a reason in words in the column BAD.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.evolution import find, is_widening
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


def fit(
    frame: DataFrame,
    columns: tuple[Column, ...],
    *,
    malformed: str,
    origin: str,
    keep: tuple[str, ...] = (),
) -> DataFrame:
    """Return the frame's rows as these columns, with BAD beside them where a row can be bad at all.

    `malformed` names the column that holds a record which no parser could read, `origin` the one that
    says where the row came from; a frame may lack the first. Columns of `keep` are carried along.
    """
    sent = columns_from_json(frame.schema.jsonValue())
    fitted: list[Expression] = []
    reasons: list[Expression] = []
    if find(sent, malformed):
        shown = F.substring(F.col(malformed), 1, _SHOWN_CHARACTERS)
        told = F.concat(F.lit("cannot be read as the table's columns: "), shown)
        reasons.append(F.when(F.col(malformed).isNotNull(), told))
    for column in columns:
        incoming = find(sent, column.name)
        if incoming is None:
            value = F.lit(None).cast(ddl(column.type))
        elif incoming.type == Plain("string") and column.type != Plain("string"):
            value, reason = _parsed(F.col(quoted(incoming.name)), column)
            reasons.append(reason)
        elif _is_narrower(column.type, incoming.type):
            value, reason = _narrowed(F.col(quoted(incoming.name)), column)
            reasons.append(reason)
        else:
            value = _adapted(F.col(quoted(incoming.name)), incoming.type, column.type)
        if column.required:
            missing = F.lit(f'column "{column.name}" is required and has no value')
            reasons.append(F.when(value.isNull(), missing))
        fitted.append(value.alias(column.name))
    if reasons:
        reason = F.coalesce(*reasons)
        # The file's name is put in front for bad rows only: cutting it from the path costs time.
        told = F.concat(F.element_at(F.split(F.col(origin), "/"), -1), F.lit(": "), reason)
        fitted.append(F.when(reason.isNotNull(), told).alias(BAD))
    return frame.select(*fitted, *keep)


def _parsed(text: Expression, column: Column) -> tuple[Expression, Expression]:
    """Return a text as the column's type, and the reason when it is none."""
    kind = column.type
    given = F.when(F.trim(text) != "", text)
    value = try_cast(given, ddl(kind))
    lost = value.isNull()
    if isinstance(kind, Decimal):
        # A cast rounds silently: compare with the value at full scale.
        digits = kind.precision - kind.scale
        lost = lost | (try_cast(given, f"decimal(38,{38 - digits})") != value)
        lost = lost | F.trim(given).rlike(rf"^[^eE]*\.\d{{{kind.scale}}}\d*[1-9]\d*$")
    elif kind == Plain("date"):
        # A cast drops a time of day silently.
        lost = lost | ~F.trim(given).rlike(r"^[+-]?\d{1,7}-\d{1,2}-\d{1,2}$")
    elif kind in (Plain("timestamp"), Plain("timestamp_ntz")):
        # A cast takes 12:30 for today, drops a zone that the type has no room for, and cuts digits.
        zone = r"(\s*(Z|[+-]\d.*|[A-Za-z].*))?" if kind == Plain("timestamp") else ""
        time = rf"[T ]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d{{1,6}}0*)?)?{zone}"
        lost = lost | ~F.trim(given).rlike(rf"^[+-]?\d{{4,6}}-\d{{1,2}}-\d{{1,2}}({time})?$")
    elif kind in (Plain("double"), Plain("float")):
        # Java reads 1d and 1f as numbers.
        lost = lost | F.trim(given).rlike(r"\d[dDfF]$")
    reason = F.concat(
        F.lit(f'column "{column.name}": "'),
        F.substring(given, 1, _SHOWN_CHARACTERS),
        F.lit(f'" is no {kind}'),
    )
    return value, F.when(given.isNotNull() & F.coalesce(lost, F.lit(True)), reason)


def _is_narrower(wanted: Type, sent: Type) -> bool:
    return isinstance(wanted, Decimal) and isinstance(sent, Decimal) and not is_widening(sent, wanted)


def _narrowed(number: Expression, column: Column) -> tuple[Expression, Expression]:
    """Return a decimal with fewer digits, and the reason when digits would be lost."""
    value = try_cast(number, ddl(column.type))
    lost = number.isNotNull() & F.coalesce(value != number, F.lit(True))
    shown = F.regexp_replace(number.cast("string"), r"(\.\d*?)0+$", "$1")
    reason = F.concat(F.lit(f'column "{column.name}": "'), shown, F.lit(f'" is no {column.type}'))
    return value, F.when(lost, reason)


def _adapted(value: Expression, sent: Type, wanted: Type) -> Expression:
    """Return a typed value as a wider type; shapes have been compared before."""
    if sent == wanted:
        return value
    match sent, wanted:
        case Struct(), Struct(fields):
            inner = []
            for field in fields:
                have = find(sent.fields, field.name)
                part = (
                    _adapted(value.getField(have.name), have.type, field.type)
                    if have
                    else F.lit(None).cast(ddl(field.type))
                )
                inner.append(part.alias(field.name))
            return F.when(value.isNotNull(), F.struct(*inner))
        case Array(have_element), Array(want_element):
            return F.transform(value, lambda item: _adapted(item, have_element, want_element))
        case Map(_, have_value), Map(_, want_value):
            return F.transform_values(value, lambda _, item: _adapted(item, have_value, want_value))
    return value.cast(ddl(wanted))
