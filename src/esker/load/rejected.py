"""Rows that cannot be loaded, as the quarantine keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.check import BAD, Beside
from esker.load.unknown import NEW_COLUMN, UNKNOWN
from esker.sources import MALFORMED, ORIGIN, RECORD

SIDE_COLUMNS = Beside(MALFORMED, RECORD)


def with_resolved(rejected: DataFrame | None, resolved: DataFrame | None) -> DataFrame | None:
    """Return what goes to the quarantine: rows that are bad, and what became of earlier ones."""
    if resolved is None:
        return rejected
    found = resolved if rejected is None else rejected.unionByName(resolved, allowMissingColumns=True)
    return found.coalesce(1)


def told_with_origin(reason: Expression, origin: Expression) -> Expression:
    """Return why a row is bad, with the name of its file in front."""
    name = F.element_at(F.split(origin, "/"), -1)
    # For bad rows only: cutting the name from the path costs time.
    return F.when(reason.isNotNull(), F.coalesce(F.concat(name, F.lit(": "), reason), reason))


def rejected_row(names: Sequence[str], number: Expression) -> list[Expression]:
    """Return the columns of a bad row as the quarantine keeps it. `number` tells its place in its batch.

    `names` are those of the frame that the row stands in.
    """
    nothing = F.lit(None).cast("string")
    rules, reason, payload = F.array().cast("array<string>"), nothing, nothing
    if BAD in names:
        rules, reason, payload = (F.col(BAD).getField(name) for name in ("rules", "reason", "payload"))
    if UNKNOWN in names:
        unknown = F.col(UNKNOWN)
        rules = F.when(unknown.isNotNull(), F.array(F.lit(NEW_COLUMN))).otherwise(rules)
        reason = F.coalesce(unknown.getField("reason"), reason)
        payload = F.coalesce(unknown.getField("payload"), payload)
    return [
        number.alias("row"),
        (F.col(ORIGIN) if ORIGIN in names else nothing).alias("origin"),
        rules.alias("rules"),
        reason.alias("reason"),
        payload.alias("payload"),
    ]


def rejected_rows(rows: DataFrame, number: Expression) -> DataFrame:
    """Return bad rows as the quarantine keeps them."""
    # As a step of its own: coalesce(1) would let one task alone look for them.
    return rows.select(*rejected_row(rows.columns, number)).repartition(1)


def rule_counts(rejected: DataFrame) -> dict[str, int]:
    """Return how many of these rows break each rule that they were rejected for."""
    counted = rejected.select(F.explode("rules").alias("rule")).groupBy("rule").count().collect()
    return {row["rule"]: row["count"] for row in counted}
