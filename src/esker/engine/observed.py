"""What was seen of rows while they went by: numbers, and some of the rows themselves."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation

from esker.engine.compat import observed_row
from esker.engine.session import Engine

_SLICE = 10_000
"""Rows that are handed to the tasks together: of many megabytes they are refused."""
_WORTH_A_TASK = 25_000


class Observed:
    """Metrics of a frame, known once the frame has been written."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._seen = engine, Observation()
        self._watched: DataFrame | None = None

    def watch(self, rows: DataFrame, metrics: dict[str, Expression]) -> DataFrame:
        """Return the same rows; what is asked of them is known when they have been through."""
        self._watched = rows.observe(self._seen, *(metric.alias(name) for name, metric in metrics.items()))
        return self._watched

    def number(self, name: str) -> int:
        """Return a metric that counts."""
        row = self._row()
        return int(row.getLong(row.fieldIndex(name)))

    def numbers(self, name: str) -> list[int]:
        """Return the numbers that a metric has collected."""
        row = self._row()
        # As one text: each number by itself would be a call into Java.
        told = row.getSeq(row.fieldIndex(name)).mkString(",")
        return [int(number) for number in told.split(",")] if told else []

    def length(self, name: str) -> int:
        """Return how many rows a metric has collected."""
        return int(self._list(name).size())

    def rows(self, name: str) -> DataFrame:
        """Return the rows that a metric has collected, in few parts. They stay in Java."""
        row, found = self._row(), self._list(name)
        kind = row.schema().apply(name).dataType().elementType()
        spark: Any = self._engine.spark
        starts = range(0, max(1, found.size()), _SLICE)
        parts = [found.subList(start, min(start + _SLICE, found.size())) for start in starts]
        # As rows of Spark's own, which go to tasks as bytes; Java's would be taken apart object by object.
        made = (DataFrame(spark._jsparkSession.createDataFrame(part, kind), spark) for part in parts)
        # What is made of rows that Spark has at hand it would work out here, unless they are put together.
        return reduce(DataFrame.union, made).coalesce(max(1, -(-found.size() // _WORTH_A_TASK)))

    def _row(self) -> Any:
        assert self._watched is not None
        return observed_row(self._seen, self._watched)

    def _list(self, name: str) -> Any:
        row = self._row()
        return row.getList(row.fieldIndex(name))
