"""Edits: what a batch does to a table in which a key may have several rows.

The state table of `diff.py` knows one row of a key in the batch and one in the table. Where there are more,
a comparison gives edits instead, again as SQL that both lanes run. Each edit has these columns:

number, outcome   the row of the batch that it stands for, and what is counted for it; a stored row that goes
                  without one has no number
place             the row of the batch whose content is meant; null where it is the content of a stored row
file, pos         the stored row
writes, removes   whether the content comes into the table, whether the stored row goes
op, before, after what the change log says, if it says anything: operation and row hashes; `after` is also
                  the hash that is written
final             order value of the change
valid_from, valid_to, is_current    those of a version
remember          the row is a delete that nothing in the table will tell of
"""

from __future__ import annotations

from esker.load.delete_insert import delete_insert_steps
from esker.load.diff import KeyRules, Undated
from esker.load.history import history_steps
from esker.load.steps import Steps


def edit_steps(rules: KeyRules, arrival: tuple[str, ...], undated: Undated) -> Steps:
    """Return the queries of a comparison; the last one gives the edits of a batch.

    They see `incoming` with columns `place`, `k` (a number for the key: the lowest place that has it), `ord`,
    `until`, `bound`, `del`, `hash` and those of `arrival`; `stored` with `winner` (the number of the key),
    `file`, `pos`, `s_hash`, `s_order`, `s_to`; `forgotten` with the order value of a remembered delete of
    `asked`, a key.
    """
    if rules.versions is None:
        return delete_insert_steps()
    return history_steps(arrival, undated, is_late=rules.is_late)


def numbered_sql(rules: KeyRules, incoming: str) -> str:
    """Return a query that gives each row of a batch the number of its key, as column `k`."""
    keys = ", ".join(f"k{index}" for index in range(len(rules.key)))
    return f"SELECT *, min(place) OVER (PARTITION BY {keys}) AS k FROM {incoming}"
