"""Find one type for the columns of several files, wide enough for each of them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from esker.project.types import Array, Column, Decimal, Map, Plain, Struct, Type, ddl

_DIGITS = {"int": 10, "bigint": 19}
_MOST_DIGITS = 38


class NoCommonType(Exception):
    """Two types of one column have none in common."""

    def __init__(self, path: str, one: Type, other: Type) -> None:
        super().__init__(path)
        self.path, self.one, self.other = path, one, other


def widen_columns(one: tuple[Column, ...], other: tuple[Column, ...], prefix: str = "") -> tuple[Column, ...]:
    """Return the columns of both; case does not count. Raises NoCommonType."""
    merged = {column.name.lower(): column for column in one}
    for column in other:
        key = column.name.lower()
        have = merged.get(key)
        kind = _widen(have.type, column.type, f"{prefix}{have.name}") if have else column.type
        merged[key] = Column(have.name if have else column.name, kind)
    return tuple(merged.values())


def fields_of(value: Callable[[str], Expression], have: Struct, wanted: Struct) -> list[Expression]:
    """Return values as wider fields, which are found by name; those that are not there are null.

    `value` returns one of them by its name.
    """
    given = {field.name.lower(): field for field in have.fields}
    found = []
    for field in wanted.fields:
        mine = given.get(field.name.lower())
        if mine is None:
            part = F.lit(None).cast(ddl(field.type))
        else:
            part = _widened(value(mine.name), mine.type, field.type)
        found.append(part.alias(field.name))
    return found


def _widened(value: Expression, have: Type, wanted: Type) -> Expression:
    if have == wanted:
        return value
    match have, wanted:
        case Struct(), Struct():
            return F.when(value.isNotNull(), F.struct(*fields_of(value.getField, have, wanted)))
        case Array(element), Array(wider):
            return F.transform(value, lambda item: _widened(item, element, wider))
        case Map(key, element), Map(wider_key, wider):
            each = F.transform_values(value, lambda _, item: _widened(item, element, wider))
            return F.transform_keys(each, lambda name, _: _widened(name, key, wider_key))
    return value.cast(ddl(wanted))


def _widen(one: Type, other: Type, path: str) -> Type:
    if one == other:
        return one
    match one, other:
        case Struct(fields), Struct(more):
            return Struct(widen_columns(fields, more, f"{path}."))
        case Array(element), Array(another):
            return Array(_widen(element, another, f"{path}.element"))
        case Map(key, value), Map(another_key, another_value):
            return Map(_widen(key, another_key, f"{path}.key"), _widen(value, another_value, f"{path}.value"))
        case Plain("int" | "bigint"), Plain("int" | "bigint"):
            return Plain("bigint")
        case Plain("float" | "double"), Plain("float" | "double"):
            return Plain("double")
        case _:
            if (decimal := _common_decimal(one, other)) is not None:
                return decimal
    raise NoCommonType(path, one, other)


def _common_decimal(one: Type, other: Type) -> Decimal | None:
    first, second = _as_decimal(one), _as_decimal(other)
    if first is None or second is None:
        return None
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return Decimal(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _as_decimal(kind: Type) -> Decimal | None:
    match kind:
        case Decimal():
            return kind
        case Plain("int" | "bigint" as name):
            return Decimal(_DIGITS[name], 0)
    return None
