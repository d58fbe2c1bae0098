"""What happens to a row: the state table of keyed modes, once, as SQL that both lanes run.

The small lane runs it in DuckDB, the large lane in Spark; only what both understand alike is used. A
row's content takes no part in it: key, order value, hash and the mark of a delete decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Literal

Outcome = Literal[
    "insert", "update", "delete", "undelete", "touch", "unchanged", "stale", "ignored", "missing"
]

WRITTEN: tuple[Outcome, ...] = ("insert", "update", "undelete", "touch")
"""Outcomes that write the incoming row."""
GONE: tuple[Outcome, ...] = ("delete", "missing")
"""Outcomes that delete the stored row. `missing`: a complete snapshot no longer has the key."""
LOGGED: tuple[Outcome, ...] = ("insert", "update", "undelete", *GONE)
"""Outcomes that are changes: they stand in the change log."""
REPLACED: tuple[Outcome, ...] = ("update", "undelete", "touch", *GONE)
"""Outcomes that take the stored row away, or put another one in its place."""

_NEWER = "coalesce(eff > s_order, eff IS NOT NULL AND s_order IS NULL)"


@dataclass(frozen=True)
class VersionColumns:
    """The columns that tell when a version of a row was valid."""

    valid_from: str
    valid_to: str
    is_current: str
    moment: datetime | None = None
    """When all versions of a batch began; None where each row tells it by its order value."""

    @property
    def names(self) -> tuple[str, str, str]:
        return self.valid_from, self.valid_to, self.is_current


@dataclass(frozen=True)
class KeyRules:
    """How a keyed pipeline compares rows."""

    key: tuple[str, ...]
    order_by: str | None = None
    deleted_column: str | None = None
    """The column that marks soft deletes; None where deletes are hard."""
    ignored: tuple[str, ...] = ()
    """Columns that do not count for the hash."""
    touches: bool = True
    """Store a newer order value although the content is the same."""
    only_inserts: bool = False
    """Known keys are left as they are."""
    is_complete: bool = False
    """A batch is all that there is: stored keys that it lacks are deleted."""
    swaps: bool = False
    """A key may have several rows; those of a batch take the place of all that are stored."""
    versions: VersionColumns | None = None
    """A key has a row for each version that it ever had."""
    is_command: bool = False
    """A person wrote the rows by a statement: they are taken as they are, whatever their order value."""
    is_late: bool = False
    """Others may have come since: a delete of which nobody knows when it happened is older than all."""
    stored_wins: bool = False
    """A row must be newer than the stored one: it is loaded again."""

    @property
    def is_unique(self) -> bool:
        """A key has one row in the table."""
        return not self.swaps and self.versions is None

    @property
    def dates(self) -> str | None:
        """The column that tells when a version began: no row can do without."""
        return self.order_by if self.versions is not None else None

    @property
    def order_column(self) -> str | None:
        """The column of the table that tells which row is newer."""
        return self.versions.valid_from if self.versions is not None else self.order_by

    def of_command(self) -> KeyRules:
        """Return the rules for rows of a statement on the same table."""
        return replace(self, is_command=True, only_inserts=False, is_complete=False)

    def hashed(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns whose content counts."""
        out = {name.lower() for name in self.ignored}
        out |= {name.lower() for name in (self.order_by, self.deleted_column) if name}
        out |= {name.lower() for name in self.versions.names} if self.versions is not None else set()
        return tuple(name for name in columns if name.lower() not in out)


class Undated(Enum):
    """Deletes of a batch that have no order value."""

    NONE = "there are none"
    BOUND = "of each it is known until when it happened, as an order value"
    LOOSE = "of some only rows of the batch can tell"

    @classmethod
    def of(cls, undated: int, loose: int) -> Undated:
        """Return what a batch has with so many, and so many of them without a bound."""
        return cls.LOOSE if loose else cls.BOUND if undated else cls.NONE


def winners_sql(rules: KeyRules, incoming: str, arrival: tuple[str, ...], undated: Undated) -> str:
    """Return a query for the newest version of each key; ties go to the last arrival.

    `incoming` has columns k0…, `ord`, `del`, those of `arrival`, and those that `dated_sql` needs.
    """
    keys = ", ".join(f"k{index}" for index in range(len(rules.key)))
    latest = ", ".join(f"{column} DESC" for column in arrival)
    return f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (
            PARTITION BY {keys} ORDER BY eff DESC NULLS LAST, {latest}) AS version
          FROM ({dated_sql(incoming, undated, is_late=rules.is_late)}) AS dated) AS versions
        WHERE version = 1"""


def dated_sql(incoming: str, undated: Undated, *, is_late: bool) -> str:
    """Return a query for rows with `eff`, the order value that counts, also for deletes that have none.

    `until` is when a row became what it is, at the latest, as a number, and 0 where the source does not know;
    `bound` is the same as an order value, null where that is no time. Such a delete is as new as its bound,
    else as the newest row of the batch that is not later than it, by `until`. Where nobody knows its time,
    it is as new as all of the batch, and as old as can be (null) in one that `is_late`.
    """
    if undated is Undated.NONE:
        return f"SELECT *, ord AS eff FROM {incoming}"
    if undated is Undated.BOUND:
        return f"SELECT *, CASE WHEN del THEN coalesce(ord, bound) ELSE ord END AS eff FROM {incoming}"
    top = "CASE WHEN i.until <> 0 THEN t.top END" if is_late else "t.top"
    # Only they are joined: rows of a source that knows no times have one `until`, and would meet in one task.
    return f"""
        SELECT *, CASE WHEN del THEN coalesce(ord, bound) ELSE ord END AS eff
        FROM {incoming} WHERE NOT coalesce(del AND ord IS NULL AND bound IS NULL, false)
        UNION ALL
        SELECT i.*, {top} AS eff
        FROM {incoming} AS i
        JOIN (SELECT until, max(newest) OVER (ORDER BY until) AS top
              FROM (SELECT until, max(ord) AS newest FROM {incoming} GROUP BY until) AS by_until) AS t
          ON t.until = i.until
        WHERE i.del AND i.ord IS NULL AND i.bound IS NULL"""


def verdicts_sql(rules: KeyRules, winners: str, stored: str, forgotten: str) -> str:
    """Return a query for what happens to each row of a batch, beside the stored version that it meets.

    `winners` has columns `winner` (a number from 0), `ord`, `eff`, `del`, `hash`. `stored` has `winner`
    (whose key a stored row has; below 0 where a complete batch lacks the key), `s_deleted`, `s_order`,
    `s_hash`, `file`, `pos`. `forgotten` has the order value of a remembered delete of `asked`, a winner.

    `final` is the order value that the row has afterwards: a late delete keeps the stored one, and a
    key that is missing goes as late as the newest row of the batch says.
    """
    join = "FULL" if rules.is_complete else "LEFT"
    final = (
        "eff" if rules.is_command else "CASE WHEN s_order IS NULL OR eff > s_order THEN eff ELSE s_order END"
    )
    return f"""
        SELECT winner, CASE WHEN winner < 0 THEN 'missing' ELSE {_outcome_sql(rules)} END AS outcome,
               hash, s_hash, file, pos, del, forgotten, {_again_sql(rules)} AS again,
               {final} AS final
        FROM (SELECT coalesce(w.winner, s.winner) AS winner, w.ord, w.del, w.hash, s.s_hash, s.s_order,
                     CASE WHEN w.winner IS NULL THEN (SELECT max(ord) FROM {winners}) ELSE w.eff END AS eff,
                     s.s_deleted, s.file, s.pos, s.winner IS NOT NULL AS stored, f.forgotten
              FROM {winners} AS w
              {join} JOIN ({_stored_sql(stored)}) AS s ON s.winner = w.winner
              LEFT JOIN {forgotten} AS f ON f.asked = w.winner) AS compared
        WHERE winner >= 0 OR NOT s_deleted"""


def _stored_sql(stored: str) -> str:
    """Return a query for the version that counts, where somebody left several rows of one key."""
    return f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (
            PARTITION BY winner ORDER BY s_deleted, s_order DESC NULLS LAST, file DESC, pos DESC) AS version
          FROM {stored}) AS versions
        WHERE version = 1"""


def _outcome_sql(rules: KeyRules) -> str:
    """Return the expression for a row's outcome.

    It sees `stored` (the key has a row), `s_deleted`, `s_order`, `s_hash`, the incoming `del`, `ord`,
    `eff`, `hash`, and `forgotten` (the order value of a remembered delete that no row tells of).
    """
    if rules.is_command:
        return _COMMANDED
    older = "coalesce(ord < s_order, ord IS NULL AND s_order IS NOT NULL) AND NOT (del AND ord IS NULL)"
    if rules.is_late:
        older = "coalesce(eff < s_order, eff IS NULL AND s_order IS NOT NULL)"
    if rules.stored_wins:
        older = f"NOT {_NEWER}"
    if rules.order_by is None:
        older = "false"
    newer = _NEWER if rules.order_by else "false"
    revived = _NEWER if rules.order_by else "true"
    known = "WHEN stored THEN 'ignored'" if rules.only_inserts else ""
    touched = f"WHEN NOT s_deleted AND {newer} THEN 'touch'" if rules.touches else ""
    return f"""CASE
        WHEN NOT stored AND del THEN 'ignored'
        WHEN NOT stored AND forgotten IS NOT NULL AND NOT coalesce(ord > forgotten, false) THEN 'stale'
        WHEN NOT stored THEN 'insert'
        {known}
        WHEN {older} THEN 'stale'
        WHEN del AND NOT s_deleted THEN 'delete'
        WHEN NOT del AND NOT s_deleted AND (s_hash IS NULL OR s_hash <> hash) THEN 'update'
        {touched}
        WHEN NOT del AND s_deleted AND forgotten IS NOT NULL AND NOT coalesce(ord > forgotten, false)
          THEN 'stale'
        WHEN NOT del AND s_deleted AND {revived} THEN 'undelete'
        ELSE 'unchanged' END"""


_COMMANDED = """CASE
        WHEN NOT stored AND del THEN 'ignored'
        WHEN NOT stored THEN 'insert'
        WHEN del AND NOT s_deleted THEN 'delete'
        WHEN NOT del AND s_deleted THEN 'undelete'
        WHEN NOT del AND (s_hash IS NULL OR s_hash <> hash) THEN 'update'
        WHEN NOT del THEN 'touch'
        ELSE 'unchanged' END"""
"""Outcomes for rows of a statement: neither late rows nor remembered deletes stand in their way. A row with
the same hash is written too, because the hash leaves some columns out."""


def _again_sql(rules: KeyRules) -> str:
    """Return the expression for a newer delete of a row that is marked as deleted already.

    The row stays as it is; the delete is remembered, so that a row dated between the two stays deleted.
    """
    return f"coalesce(del AND s_deleted AND {_NEWER}, false)" if rules.order_by else "false"
