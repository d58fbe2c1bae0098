"""A sieve: good rows pass through it, the others are counted and some of them kept.

Spark's own way to look at rows on their way (`observe`) takes every row out of the one method that Spark
makes of a step, and copies it: that cost as much as ten rules. Here the condition of a filter itself counts
and keeps a row, in accumulators, and rows that pass never get that far.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import column_of, frame_of, rows_at_hand, static_call
from esker.engine.session import Engine
from esker.project.types import quoted

_SLICE = 10_000
"""Rows that are handed to the tasks together: of many megabytes they are refused."""
_WORTH_A_TASK = 25_000
_IN_TASK = (1 << 33) - 1
"""The part of an increasing id that counts within a task."""


class Sieve:
    """What stays behind of a frame, known once the frame has been written.

    A task that Spark repeats is counted twice where rows are exchanged between tasks behind the sieve: its
    rows stay twice, and every count is too high.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        util = self._jvm.org.apache.spark.util
        self._kept = self._registered(util.CollectionAccumulator())
        self._left_out = self._registered(util.LongAccumulator())
        self._counts: dict[str, Any] = {}
        self._schema: Any = None

    def through(
        self,
        rows: DataFrame,
        is_left_out: Expression,
        is_kept: Expression,
        most: int,
        counts: Mapping[str, Expression],
    ) -> DataFrame:
        """Return the rows that pass: all but those left out.

        Of these, those that are also to be kept stay here, at most so many of a task. `counts` are conditions
        by name: of all rows, also those that pass, it is counted how many fulfil them.
        """
        frame: Any = rows
        self._schema = frame._jdf.schema()
        names = ", ".join(quoted(name) for name in rows.columns)
        whole = (
            self._engine.spark._jsparkSession.sessionState().sqlParser().parseExpression(f"struct({names})")
        )
        # What a task reads lies in memory that it uses again for the next rows.
        copied = self._called(whole, "copy", self._schema)
        nth = F.monotonically_increasing_id().bitwiseAND(F.lit(_IN_TASK))  # counts only those that get here
        kept = F.when(nth < most, F.when(is_kept, self._adding(self._kept, copied)))
        one = self._parsed("1L")
        # Whatever adds says false.
        stays = self._adding(self._left_out, one) | F.coalesce(kept, F.lit(False))
        passes = F.when(is_left_out, stays).otherwise(F.lit(True))
        for name, condition in counts.items():
            self._counts[name] = self._registered(self._jvm.org.apache.spark.util.LongAccumulator())
            passes = F.when(condition, self._adding(self._counts[name], one)).otherwise(F.lit(False)) | passes
        return rows.where(passes)

    @property
    def left_out(self) -> int:
        """How many rows did not pass."""
        return int(self._left_out.sum())

    @property
    def kept(self) -> int:
        """How many of them stayed here."""
        return int(self._kept.value().size())

    def count(self, name: str) -> int:
        """Return how many rows fulfil one of the conditions that are counted."""
        return int(self._counts[name].sum())

    def rows(self) -> DataFrame:
        """Return the rows that stayed here, in few parts."""
        spark = self._engine.spark
        found = self._kept.value()
        size = int(found.size())
        parts = [found.subList(start, min(start + _SLICE, size)) for start in range(0, max(1, size), _SLICE)]
        made = (self._handed_over(spark, part) for part in parts)
        return reduce(DataFrame.union, made).coalesce(max(1, -(-size // _WORTH_A_TASK)))

    def _handed_over(self, spark: Any, part: Any) -> DataFrame:
        """Return rows that are here as a frame.

        As bytes of Spark's own: objects of Java would be taken apart one by one. And not as values within a
        plan: Spark would look at each of them with every step that is planned.
        """
        at_hand: Any = frame_of(spark, rows_at_hand(self._jvm, part, self._schema))
        session = spark._jsparkSession
        rows = session.internalCreateDataFrame(at_hand._jdf.queryExecution().toRdd(), self._schema, False)
        return DataFrame(rows, spark)

    def _adding(self, accumulator: Any, value: Any) -> Expression:
        """Return what adds a value to an accumulator, and is false."""
        catalyst = self._jvm.org.apache.spark.sql.catalyst.expressions
        kind = self._jvm.org.apache.spark.sql.types.ObjectType
        # In an array, because Spark may print its plans, and an accumulator prints what it holds.
        context: Any = self._engine.spark.sparkContext
        holder = context._gateway.new_array(self._jvm.java.lang.Object, 1)
        holder[0] = accumulator
        held = catalyst.Literal(holder, kind(holder.getClass()))
        arguments = self._jvm.PythonUtils.toSeq([held, self._parsed("0")])
        taken = static_call(
            self._jvm, "java.lang.reflect.Array", "get", kind(accumulator.getClass()), arguments
        )
        # The only expression that calls a method without a result.
        added = catalyst.objects.InitializeJavaBean(taken, self._jvm.PythonUtils.toScalaMap({"add": value}))
        boolean = self._jvm.org.apache.spark.sql.types.DataTypes.BooleanType
        return column_of(self._engine.spark, self._called(added, "isZero", boolean))

    def _parsed(self, text: str) -> Any:
        spark: Any = self._engine.spark
        return spark._jsparkSession.sessionState().sqlParser().parseExpression(text)

    def _called(self, target: Any, method: str, kind: Any) -> Any:
        invoke = self._jvm.org.apache.spark.sql.catalyst.expressions.objects.Invoke
        nothing = self._jvm.PythonUtils.toSeq([])
        return invoke(target, method, kind, nothing, nothing, True, True, True)

    def _registered(self, accumulator: Any) -> Any:
        context: Any = self._engine.spark.sparkContext
        context._jsc.sc().register(accumulator)
        return accumulator

    @property
    def _jvm(self) -> Any:
        return self._engine.spark.sparkContext._jvm
