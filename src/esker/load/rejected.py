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
    if rejected is None or resolved is None:
        return resolved if rejected is None else rejected
    return rejected.unionByName(resolved, allowMissingColumns=True).coalesce(1)


def told_with_origin(checked: DataFrame) -> Expression:
    """Return why a row is bad, with the name of its file in front."""
    reason = F.col(BAD).getField("reason")
    if ORIGIN not in checked.columns:
        return reason
    name = F.element_at(F.split(F.col(ORIGIN), "/"), -1)
    # For bad rows only: cutting the name from the path costs time.
    return F.when(reason.isNotNull(), F.coalesce(F.concat(name, F.lit(": "), reason), reason))


def rejected_rows(rows: DataFrame, number: Expression) -> DataFrame:
    """Return bad rows as the quarantine keeps them. `number` tells the place of each in its batch."""
    nothing = F.lit(None).cast("string")
    rules, reason, payload = F.array().cast("array<string>"), nothing, nothing
    if BAD in rows.columns:
        rules, reason, payload = (F.col(BAD).getField(name) for name in ("rules", "reason", "payload"))
    if UNKNOWN in rows.columns:
        unknown = F.col(UNKNOWN)
        rules = F.when(unknown.isNotNull(), F.array(F.lit(NEW_COLUMN))).otherwise(rules)
        reason = F.coalesce(unknown.getField("reason"), reason)
        payload = F.coalesce(unknown.getField("payload"), payload)
    return rows.select(
        number.alias("row"),
        (F.col(ORIGIN) if ORIGIN in rows.columns else nothing).alias("origin"),
        rules.alias("rules"),
        reason.alias("reason"),
        payload.alias("payload"),
    ).coalesce(1)
