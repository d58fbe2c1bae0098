"""A filter of rows as a condition of Spark, which gives the same rows. Imported where PyIceberg is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import UUID

from pyiceberg.expressions import BoundTerm
from pyiceberg.expressions.literals import Literal
from pyiceberg.expressions.visitors import BoundBooleanExpressionVisitor, visit
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from pyspark.sql import Column
from pyspark.sql import functions as F

from esker.project.types import quoted
from esker.reading.filter import RowFilter


def as_condition(wanted: RowFilter) -> Column:
    """Return a filter as a condition of Spark."""
    return visit(wanted.bound, _AsCondition(wanted.schema))


class _AsCondition(BoundBooleanExpressionVisitor[Column]):
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def _column(self, term: BoundTerm) -> Column:
        own = term.ref().field
        if any(own.field_id == each.field_id for each in self._schema.fields):
            return F.col(quoted(own.name))
        path = self._schema.find_column_name(own.field_id)
        assert path is not None
        return F.col(".".join(quoted(part) for part in path.split(".")))

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Column:
        kind = term.ref().field.field_type
        column = self._column(term)
        return reduce(Column.__or__, (column == _value(kind, each) for each in literals))

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Column:
        return ~self.visit_in(term, literals)

    def visit_is_nan(self, term: BoundTerm) -> Column:
        return F.isnan(self._column(term))

    def visit_not_nan(self, term: BoundTerm) -> Column:
        # Spark says of a null that it is no NaN; of a null, SQL says nothing.
        return ~F.isnan(self._column(term)) & self._column(term).isNotNull()

    def visit_is_null(self, term: BoundTerm) -> Column:
        return self._column(term).isNull()

    def visit_not_null(self, term: BoundTerm) -> Column:
        return self._column(term).isNotNull()

    def visit_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) == self._literal(term, literal)

    def visit_not_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) != self._literal(term, literal)

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._not_nan(term, self._column(term) >= self._literal(term, literal))

    def visit_greater_than(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._not_nan(term, self._column(term) > self._literal(term, literal))

    def visit_less_than(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) < self._literal(term, literal)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term) <= self._literal(term, literal)

    def visit_true(self) -> Column:
        return F.lit(True)

    def visit_false(self) -> Column:
        return F.lit(False)

    def visit_not(self, child_result: Column) -> Column:
        return ~child_result

    def visit_and(self, left_result: Column, right_result: Column) -> Column:
        return left_result & right_result

    def visit_or(self, left_result: Column, right_result: Column) -> Column:
        return left_result | right_result

    def visit_starts_with(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return self._column(term).startswith(self._literal(term, literal))

    def visit_not_starts_with(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return ~self.visit_starts_with(term, literal)

    def _not_nan(self, term: BoundTerm, condition: Column) -> Column:
        """For Spark a NaN is greater than all numbers; for Arrow, and so for the filter, it is not."""
        is_real = isinstance(term.ref().field.field_type, FloatType | DoubleType)
        return condition & ~F.isnan(self._column(term)) if is_real else condition

    def _literal(self, term: BoundTerm, literal: Literal[Any]) -> Column:
        return _value(term.ref().field.field_type, literal.value)


def _value(kind: IcebergType, value: Any) -> Column:
    match kind:
        case DateType():
            return F.lit(date(1970, 1, 1) + timedelta(days=value))
        case TimestamptzType():
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
            return F.expr(f"TIMESTAMP '{moment.isoformat()}'")
        case TimestampType():
            local = datetime(1970, 1, 1) + timedelta(microseconds=value)
            return F.expr(f"TIMESTAMP_NTZ '{local.isoformat()}'")
        case UUIDType():
            return F.lit(str(UUID(bytes=value)))
        case BinaryType() | FixedType():
            return F.lit(bytearray(value))
    return F.lit(value if isinstance(value, bool | int | float | Decimal | str) else str(value))
