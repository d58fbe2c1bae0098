"""The rows of a batch for a keyed mode: fitted to the table, with what decides beside them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.check import BAD, check
from esker.contracts.rules import RowRules
from esker.load.diff import KeyRules
from esker.load.rejected import SIDE_COLUMNS
from esker.load.unknown import UNKNOWN, forgiven
from esker.project.types import Column, quoted
from esker.sources import ORIGIN, UNTIL

DELETED = "_esker_deleted"
"""Column of an incoming frame: the row is a delete."""
START = "_esker_start"
SEQUENCE = "_esker_sequence"
ARRIVAL = (ORIGIN, START, SEQUENCE)
"""Columns by which rows are ordered as they arrived: file, place in the file, place in the part."""


@dataclass(frozen=True)
class DeleteMark:
    """How deletes are told from rows."""

    when: str | None = None
    """A SQL condition on the row."""
    column: str | None = None
    """A column of the source that is true for deletes."""
    beside: str | None = None
    """Such a column that the table does not have."""


def incoming(
    frame: DataFrame, columns: tuple[Column, ...], rules: KeyRules, mark: DeleteMark, checks: RowRules
) -> DataFrame:
    """Return a source's rows fitted to the table's columns, with DELETED, ARRIVAL and BAD, and with UNKNOWN
    and UNTIL where there are any.

    A row without a key is no error here: it goes to the quarantine later. Of a delete nothing but the key
    counts.
    """
    arrived = frame.select(
        "*",
        F.input_file_block_start().alias(START),
        F.monotonically_increasing_id().alias(SEQUENCE),
    )
    if ORIGIN not in frame.columns:
        arrived = arrived.withColumn(ORIGIN, F.lit(None).cast("string"))
    keys = {name.lower() for name in rules.key}
    relaxed = tuple(Column(c.name, c.type, c.required and c.name.lower() not in keys, c.doc) for c in columns)
    there = (name for name in (mark.beside, UNKNOWN, UNTIL) if name in frame.columns)
    keep = tuple(name for name in there if name is not None)
    fitted = check(arrived, relaxed, checks, SIDE_COLUMNS, ARRIVAL, keep).all_told()
    is_delete = _deleted(columns, mark)
    if BAD in fitted.columns:
        bits = {name: F.when(is_delete, 0).otherwise(F.col(name)) for name in checks.columns}
        fitted = fitted.withColumns({BAD: F.when(~is_delete, F.col(BAD)), **bits})
    else:
        fitted = fitted.withColumn(
            BAD, F.lit(None).cast("struct<rules: array<string>, reason: string, payload: string>")
        )
    whole = forgiven(fitted).withColumn(DELETED, is_delete)
    return whole if mark.beside is None else whole.drop(mark.beside)


def _deleted(columns: tuple[Column, ...], mark: DeleteMark) -> Expression:
    condition = F.lit(False)
    if mark.when is not None:
        condition = F.expr(mark.when)
    elif mark.column is not None and any(c.name.lower() == mark.column.lower() for c in columns):
        condition = F.col(quoted(mark.column)).cast("boolean")
    found = F.coalesce(condition, F.lit(False))
    return found if mark.beside is None else found | F.col(mark.beside)
