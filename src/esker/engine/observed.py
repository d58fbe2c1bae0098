"""What was seen of rows while they went by: numbers, and some of the rows themselves."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation

from esker.engine.session import Engine

_SLICE = 1_000
"""Rows that are handed to one task: tasks of many megabytes are refused."""


class Observed:
    """Metrics of a frame, known once the frame has been written."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._seen = engine, Observation()

    def watch(self, rows: DataFrame, metrics: dict[str, Expression]) -> DataFrame:
        """Return the same rows; what is asked of them is known when they have been through."""
        return rows.observe(self._seen, *(metric.alias(name) for name, metric in metrics.items()))

    def number(self, name: str) -> int:
        """Return a metric that counts."""
        row = self._row()
        return int(row.getLong(row.fieldIndex(name)))

    def length(self, name: str) -> int:
        """Return how many rows a metric has collected."""
        return int(self._list(name).size())

    def rows(self, name: str) -> DataFrame:
        """Return the rows that a metric has collected. They stay in Java, and are not read again."""
        row, found = self._row(), self._list(name)
        kind = row.schema().apply(name).dataType().elementType()
        session: Any = self._engine.spark
        context = self._engine.spark.sparkContext
        slices = max(1, -(-found.size() // _SLICE))
        shared = context._jsc.parallelize(found, slices)
        return DataFrame(session._jsparkSession.createDataFrame(shared, kind), session)

    def _row(self) -> Any:
        seen: Any = self._seen
        return seen._jo.getRow()

    def _list(self, name: str) -> Any:
        row = self._row()
        return row.getList(row.fieldIndex(name))
