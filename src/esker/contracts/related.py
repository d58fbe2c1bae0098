"""Rules that look at more than one row: values that must be unique, or stand in another table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.contracts.rules import GOOD, SHOWN_CHARACTERS, CheckedRule
from esker.project.types import quoted


@dataclass(frozen=True)
class UniqueRows:
    """No two rows have the same values. Of several in a batch the first is good."""

    rule: CheckedRule
    flag: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Rows of the table with the same key are not compared: the new one takes their place."""
    stored: DataFrame | None
    """The rows that stay in the table beside those of the batch, if any."""

    def mark(self, rows: DataFrame, arrival: tuple[str, ...]) -> DataFrame:
        values = [F.col(quoted(name)) for name in self.columns]
        is_whole = _all_there(values) & F.col(GOOD)
        # Rows that are bad anyway stand in nobody's way, and those without a value are like no other: each
        # has a group of its own, and no task has all of them.
        apart = F.when(~is_whole, F.struct(*arrival))
        own = [F.col(quoted(name)) for name in self.key]
        window = Window.partitionBy(*values, apart)
        ordered = window.orderBy(*(F.col(name) for name in arrival))
        first = F.row_number().over(ordered) > 1
        if own:
            # Versions of one key are no duplicates of each other.
            first = first & (F.struct(*own) != F.first(F.struct(*own)).over(ordered))
        marked = rows.withColumn(self.flag, is_whole & first)
        return marked if self.stored is None else self._beside(marked, self.stored)

    def _beside(self, rows: DataFrame, stored: DataFrame) -> DataFrame:
        """Return rows with the flag set where the table has their values, too."""
        names = [f"_esker_v{index}" for index in range(len(self.columns))]
        values = [F.col(quoted(name)).alias(alias) for name, alias in zip(self.columns, names, strict=True)]
        if self.key:
            # What the batch brings of a key takes the place of what is stored of it.
            keys = [quoted(name) for name in self.key]
            stored = stored.join(rows.where(GOOD).select(*keys).distinct(), list(self.key), "left_anti")
        known = stored.select(*values).distinct().withColumn("_esker_known", F.lit(True))
        same = [F.col(quoted(name)) == F.col(alias) for name, alias in zip(self.columns, names, strict=True)]
        found = rows.join(known, same, "left")
        is_there = F.col("_esker_known").isNotNull()
        flagged = found.withColumn(self.flag, F.col(self.flag) | is_there)
        return flagged.drop(*names, "_esker_known")

    def told(self) -> Expression:
        return _told(self.columns, "is there already")


@dataclass(frozen=True)
class ReferencedRows:
    """The values stand in another table. A row that lacks one of them refers to nothing."""

    rule: CheckedRule
    flag: str
    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...]
    others: DataFrame

    def mark(self, rows: DataFrame, arrival: tuple[str, ...]) -> DataFrame:
        names = [f"_esker_v{index}" for index in range(len(self.columns))]
        targets = [F.col(quoted(name)).alias(alias) for name, alias in zip(self.to, names, strict=True)]
        known = self.others.select(*targets).distinct().withColumn("_esker_known", F.lit(True))
        values = [F.col(quoted(name)) for name in self.columns]
        same = [value == F.col(alias) for value, alias in zip(values, names, strict=True)]
        found = rows.join(known, same, "left")
        flagged = found.withColumn(self.flag, _all_there(values) & F.col("_esker_known").isNull())
        return flagged.drop(*names, "_esker_known")

    def told(self) -> Expression:
        return _told(self.columns, f"stands nowhere in {self.table} ({', '.join(self.to)})")


def _all_there(values: list[Expression]) -> Expression:
    there = F.lit(True)
    for value in values:
        there = there & value.isNotNull()
    return there


def _told(columns: tuple[str, ...], why: str) -> Expression:
    names = ", ".join(f'"{name}"' for name in columns)
    shown = F.concat_ws(", ", *(F.col(quoted(name)).cast("string") for name in columns))
    word = "column" if len(columns) == 1 else "columns"
    return F.concat(F.lit(f'{word} {names}: "'), F.substring(shown, 1, SHOWN_CHARACTERS), F.lit(f'" {why}'))
