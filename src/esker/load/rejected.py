"""Rows that cannot be loaded, as the quarantine keeps them."""

from __future__ import annotations

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


def told_rows(rows: DataFrame, number: Expression) -> DataFrame:
    """Return bad rows as the quarantine keeps them. `number` tells their place in their batch."""
    names = rows.columns
    nothing = F.lit(None).cast("string")
    rules, reason, payload = F.array().cast("array<string>"), nothing, nothing
    if BAD in names:
        rules, reason, payload = (F.col(BAD).getField(name) for name in ("rules", "reason", "payload"))
    if UNKNOWN in names:
        unknown = F.col(UNKNOWN)
        rules = F.when(unknown.isNotNull(), F.array(F.lit(NEW_COLUMN))).otherwise(rules)
        reason = F.coalesce(unknown.getField("reason"), reason)
        payload = F.coalesce(unknown.getField("payload"), payload)
    return rows.select(
        number.alias("row"),
        (F.col(ORIGIN) if ORIGIN in names else nothing).alias("origin"),
        rules.alias("rules"),
        reason.alias("reason"),
        payload.alias("payload"),
    )
