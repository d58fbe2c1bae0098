"""Rules of other engines: a package registers a function, and contracts name its engine.

The function is an entry point of the group `esker.rules`, named like the engine. It gets the rows, with a
number `esker_row` beside the table's columns, and what the contract says below `implementation:`. It
returns the rows that break the rule: `esker_row`, and `reason` in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.rules import SHOWN_CHARACTERS, CheckedRule
from esker.engine.kept import KeptFrames
from esker.errors import RuleEngineFailed
from esker.project.reserved import is_own
from esker.project.types import quoted

GROUP = "esker.rules"
NUMBER = "esker_row"
Check = Callable[[DataFrame, Any], DataFrame]


@cache
def installed() -> Mapping[str, Check]:
    """Return the rule engines that installed packages offer, by name."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}


@dataclass(frozen=True)
class PluggedInRows:
    """Rows are good that another engine does not name."""

    rule: CheckedRule
    flag: str
    engine: str
    check: Check
    implementation: Any
    kept: KeptFrames
    """The rows are kept: the engine looks at them on its own, and must see the same ones."""

    def mark(self, rows: DataFrame, arrival: tuple[str, ...]) -> DataFrame:
        whole = self.kept.keep_once(rows)
        number = arrival[-1]
        shown = [F.col(quoted(name)) for name in whole.columns if not is_own(name)]
        try:
            failing = self.check(whole.select(*shown, F.col(number).alias(NUMBER)), self.implementation)
            told = failing.select(NUMBER, F.col("reason").cast("string").alias(self._reason))
        except Exception as error:
            raise RuleEngineFailed(self.rule.name, self.engine, f"{type(error).__name__}: {error}") from error
        told = told.groupBy(NUMBER).agg(F.max(self._reason).alias(self._reason))
        found = whole.join(told, F.col(number) == F.col(NUMBER), "left")
        return found.withColumn(self.flag, F.col(NUMBER).isNotNull()).drop(NUMBER)

    def told(self) -> Expression:
        reason = F.substring(F.col(self._reason), 1, 2 * SHOWN_CHARACTERS)
        return F.coalesce(F.nullif(reason, F.lit("")), F.lit(f'breaks the rule "{self.rule.name}"'))

    @property
    def _reason(self) -> str:
        return f"{self.flag}_reason"
