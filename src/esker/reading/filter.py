"""Which rows of a table are wanted: a filter in PyIceberg's grammar, and a range of a time column.

The grammar is that of PyIceberg's `table.scan(row_filter=…)`: SQL comparisons with AND, OR and NOT. Values
become those of the column here, strictly: a filter never compares with a rounded or truncated value, but
for columns of 32-bit floats, whose own values were rounded the same way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundTerm,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotNull,
    Or,
    Reference,
    SetPredicate,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import (
    AboveMax,
    BelowMin,
    DateLiteral,
    DecimalLiteral,
    FloatLiteral,
    Literal,
    LongAboveMax,
    LongBelowMin,
    LongLiteral,
    TimestampLiteral,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import (
    BooleanExpressionVisitor,
    bind,
    extract_field_ids,
    rewrite_not,
    visit,
)

# Private there, and the package is pinned to one minor version: see rows.py.
from pyiceberg.io.pyarrow import _ConvertToArrowExpression, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from pyparsing import ParseBaseException

from esker.errors import ScanInvalid
from esker.project.suggest import closest

_EPOCH = datetime(1970, 1, 1)
_UUID = pa.binary(16)
_EXACT = Context(prec=400)
"""Python rounds to 28 digits, or refuses: columns have up to 38, and values in filters may be longer."""
_GRAMMAR = (
    "Write comparisons with AND, OR and NOT, values in single quotes: status = 'open' AND amount >= 10. "
    "There are =, !=, <, <=, >, >=, BETWEEN, IN, IS NULL, IS NAN and LIKE 'abc%'; a boolean column is "
    "compared with true or false."
)
_TIMES = "Write 2026-11-03, 2026-11-03T14:00 or 2026-11-03T14:00+01:00; without a zone it is UTC."


@dataclass(frozen=True)
class TimeRange:
    """The rows whose time lies in [start, end): `start` included, `end` excluded, None for no limit."""

    column: str
    start: datetime | date | str | None = None
    end: datetime | date | str | None = None

    def expression(self, table: str, schema: Schema) -> BooleanExpression:
        """Return it as a filter, or raise ScanInvalid."""
        kind = _type_of(table, schema, self.column)
        if not _is_time(kind):
            why = f'Column "{self.column}" is of type {kind}, which is neither a date nor a timestamp.'
            raise ScanInvalid(
                table, why, f'Name a time column, or compare its values: where="{self.column} >= …"'
            )
        found: BooleanExpression = AlwaysTrue()
        start, end = _moment(table, self.start), _moment(table, self.end)
        if start is not None and end is not None and start > end:
            raise ScanInvalid(
                table, f"The time range ends ({self.end}) before it begins ({self.start}).", _TIMES
            )
        if start is not None:
            found = And(found, _compared(GreaterThanOrEqual, self.column, _limit(kind, start)))
        if end is not None:
            found = And(found, _compared(LessThan, self.column, _limit(kind, end)))
        return found


@dataclass(frozen=True)
class RowFilter:
    """A filter that fits a table's columns."""

    schema: Schema
    expression: BooleanExpression
    """Unbound, without NOT, with values of the columns' own types."""

    @classmethod
    def of(
        cls, table: str, schema: Schema, where: str | None, times: TimeRange | None = None
    ) -> RowFilter | None:
        """Return a filter; None where all rows are wanted. Raises ScanInvalid."""
        found: BooleanExpression = AlwaysTrue()
        if where is not None:
            found = _parsed(table, schema, where)
        if times is not None:
            found = And(found, times.expression(table, schema))
        if isinstance(found, AlwaysTrue):
            return None
        made = cls(schema, found)
        try:
            schema_to_pyarrow(schema).empty_table().filter(made.arrow)
        except (ValueError, TypeError, NotImplementedError, pa.ArrowException) as error:
            why = f"The filter does not fit the columns: {_first_line(error)}."
            raise ScanInvalid(table, why, _GRAMMAR) from error
        return made

    @cached_property
    def bound(self) -> BooleanExpression:
        return bind(self.schema, self.expression, case_sensitive=True)

    @cached_property
    def arrow(self) -> pc.Expression:
        """The filter as Arrow evaluates it; rows for which it is null are not wanted, as in SQL."""
        return visit(self.bound, _AsSql(self.schema))

    @cached_property
    def columns(self) -> set[str]:
        """The top-level columns that it looks at."""
        ids = extract_field_ids(self.bound)
        return {each.name for each in self.schema.fields if ids & _ids_in(each.field_id, each.field_type)}

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted rows of a batch."""
        return batch.filter(self.arrow)


def chosen(table: str, schema: Schema, columns: Sequence[str] | None, further: Iterable[str] = ()) -> Schema:
    """Return some columns of a table, or all, in the order in which they are named, and further ones.

    Raises ScanInvalid for a column that is not there.
    """
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise ScanInvalid(table, f'columns="{columns}" is a text.', f'Write a list: columns=["{columns}"]')
    if not columns:
        raise ScanInvalid(
            table, "No column is named.", "Name a column, or leave `columns` out for all of them."
        )
    by_name = {each.name: each for each in schema.fields}
    for name in columns:
        if name not in by_name:
            raise _no_column(table, schema, name)
    return Schema(*(by_name[name] for name in dict.fromkeys((*columns, *further))))


class _AsSql(_ConvertToArrowExpression):
    """PyIceberg's own conversion keeps the nulls of `x NOT IN (…)`, and Arrow compares no UUIDs."""

    def visit_equal(self, term: BoundTerm, literal: Literal[Any]) -> pc.Expression:
        if _is_uuid(term):
            return self._bytes(term) == pa.scalar(literal.value, _UUID)
        return super().visit_equal(term, literal)

    def visit_not_equal(self, term: BoundTerm, literal: Literal[Any]) -> pc.Expression:
        if _is_uuid(term):
            return self._bytes(term) != pa.scalar(literal.value, _UUID)
        return super().visit_not_equal(term, literal)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> pc.Expression:
        if _is_uuid(term):
            return self._bytes(term).isin(pa.array(list(literals), _UUID))
        if 0.0 in literals and isinstance(term.ref().field.field_type, FloatType | DoubleType):
            # Only here Arrow tells the two zeros apart, and a set holds one of them.
            return super().visit_in(term, literals) | (pc.field(self._get_field_name(term)) == 0.0)
        return super().visit_in(term, literals)

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> pc.Expression:
        return ~self.visit_in(term, literals) & self.visit_not_null(term)

    def _bytes(self, term: BoundTerm) -> pc.Expression:
        return pc.field(self._get_field_name(term)).cast(_UUID)


def _is_uuid(term: BoundTerm) -> bool:
    return isinstance(term.ref().field.field_type, UUIDType)


def _parsed(table: str, schema: Schema, where: str) -> BooleanExpression:
    try:
        found = parse(where)
    except ParseBaseException as error:
        place = where[error.loc :].strip()
        at = f' at "{place[:40]}"' if place and error.loc else ""
        raise ScanInvalid(table, f'The filter "{where}" cannot be understood{at}.', _GRAMMAR) from None
    except ValueError as error:
        why = f'The filter "{where}" cannot be understood: {_first_line(error)}.'
        raise ScanInvalid(table, why, _GRAMMAR) from None
    # Without NOT from here on: a null matches neither a comparison nor its opposite.
    return visit(rewrite_not(found), _Typed(table, schema))


class _Typed(BooleanExpressionVisitor[BooleanExpression]):
    """Gives each value of a filter the type of the column that it is compared with."""

    def __init__(self, table: str, schema: Schema) -> None:
        self.table, self.schema = table, schema

    def visit_true(self) -> BooleanExpression:
        return AlwaysTrue()

    def visit_false(self) -> BooleanExpression:
        return AlwaysFalse()

    def visit_not(self, child_result: BooleanExpression) -> BooleanExpression:
        return Not(child_result)

    def visit_and(self, left_result: BooleanExpression, right_result: BooleanExpression) -> BooleanExpression:
        return And(left_result, right_result)

    def visit_or(self, left_result: BooleanExpression, right_result: BooleanExpression) -> BooleanExpression:
        return Or(left_result, right_result)

    def visit_bound_predicate(self, predicate: Any) -> BooleanExpression:
        raise AssertionError("a filter in text names its columns")

    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> BooleanExpression:
        term = predicate.term
        assert isinstance(term, Reference)
        kind = _type_of(self.table, self.schema, term.name)
        if isinstance(predicate, LiteralPredicate):
            value = self._value(term.name, kind, predicate.literal)
            if isinstance(value, AboveMax | BelowMin):
                return _beyond(term, predicate, value)
            return type(predicate)(term, value)
        if isinstance(predicate, SetPredicate):
            values = {self._value(term.name, kind, each) for each in predicate.literals}
            # Beyond the range of the column: PyIceberg would compare with the end of the range.
            possible = {each for each in values if not isinstance(each, AboveMax | BelowMin)}
            if not possible:
                return AlwaysFalse() if isinstance(predicate, In) else NotNull(term=term)
            return type(predicate)(term, possible)
        return predicate

    def _value(self, column: str, kind: IcebergType, given: Any) -> Literal[Any]:
        try:
            if not isinstance(kind, PrimitiveType):
                raise ValueError("only simple values are compared")  # noqa: TRY301
            return _as_type(kind, given)
        except (ValueError, TypeError, ArithmeticError):
            why = f'Column "{column}" is of type {kind}, and cannot be compared with {given!s}.'
            raise ScanInvalid(self.table, why, _TIMES if _is_time(kind) else _GRAMMAR) from None


def _beyond(term: Reference, predicate: LiteralPredicate, value: Literal[Any]) -> BooleanExpression:
    """Return a comparison with a value beyond all that a column may have: all of them match, or none."""
    below = isinstance(predicate, LessThan | LessThanOrEqual)
    above = isinstance(predicate, GreaterThan | GreaterThanOrEqual)
    all_match = below if isinstance(value, AboveMax) else above
    return NotNull(term=term) if all_match or isinstance(predicate, NotEqualTo) else AlwaysFalse()


def _as_type(kind: PrimitiveType, given: Literal[Any]) -> Literal[Any]:
    """Return a value as one of a type, exactly, or raise ValueError."""
    value = given.value
    if _is_time(kind):
        if not isinstance(value, str):
            raise ValueError(value)
        moment = _read_moment(value)
        if isinstance(kind, DateType) and moment != _midnight(moment):
            raise ValueError(value)
        return _limit(kind, moment)
    if isinstance(kind, DecimalType) and not isinstance(value, bool):
        exact = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
        if exact != Decimal(value):
            raise ValueError(value)
        if exact and exact.adjusted() >= kind.precision - kind.scale:
            return LongAboveMax() if exact > 0 else LongBelowMin()
        return DecimalLiteral(exact)
    if isinstance(kind, IntegerType | LongType) and not isinstance(value, bool):
        if Decimal(value) != int(Decimal(value)):
            raise ValueError(value)
        return LongLiteral(int(Decimal(value))).to(kind)
    found = given.to(kind)
    # Files are left out by this value, and rows chosen by what Arrow makes of it: both must be the same.
    if isinstance(found, FloatLiteral):
        return FloatLiteral(struct.unpack("<f", struct.pack("<f", found.value))[0])
    return found


def _is_time(kind: IcebergType) -> bool:
    return isinstance(kind, DateType | TimestampType | TimestamptzType)


def _compared(
    operator: Callable[..., BooleanExpression], column: str, value: Literal[Any]
) -> BooleanExpression:
    return operator(Reference(column), value)


def _limit(kind: IcebergType, moment: datetime) -> Literal[Any]:
    """Return a moment, in UTC, as a value of a time column that as many rows lie before."""
    since = moment.astimezone(UTC).replace(tzinfo=None) - _EPOCH
    if isinstance(kind, DateType):
        whole = since // timedelta(days=1)
        # A day begins at midnight: it lies before a moment later that day, and the next one does not.
        return DateLiteral(whole if moment == _midnight(moment) else whole + 1)
    return TimestampLiteral(since // timedelta(microseconds=1)).to(kind)


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _moment(table: str, given: datetime | date | str | None) -> datetime | None:
    if given is None:
        return None
    try:
        if isinstance(given, str):
            return _read_moment(given).astimezone(UTC)
        if not isinstance(given, datetime):
            return datetime(given.year, given.month, given.day, tzinfo=UTC)
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter for a time that no year has in UTC
        raise ScanInvalid(table, f'"{given}" is not a valid time.', _TIMES) from None


def _read_moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _type_of(table: str, schema: Schema, column: str) -> IcebergType:
    try:
        return schema.find_field(column).field_type
    except ValueError:
        raise _no_column(table, schema, column) from None


def _no_column(table: str, schema: Schema, column: str) -> ScanInvalid:
    like = closest(column, schema.column_names)
    names = ", ".join(each.name for each in schema.fields if not each.name.startswith("_esker_"))
    instead = f'Write "{like}".' if like is not None else f"Its columns are {names}."
    return ScanInvalid(table, f'It has no column "{column}".', instead)


def _ids_in(own: int, kind: IcebergType) -> set[int]:
    """Return the field ids of a column and of what lies in it."""
    inner: Iterable[Any] = getattr(kind, "fields", ())
    return {own}.union(*(_ids_in(each.field_id, each.field_type) for each in inner))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
