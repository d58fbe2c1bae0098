"""Where a pipeline stands in a table: its ledger entry, after a look at whether it can be trusted."""

from __future__ import annotations

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import LedgerForeign, LedgerMissing, TableRewound
from esker.ledger.entry import LedgerEntry, read_entry, read_head


def standing(
    engine: Engine, table: TableId, pipeline: str, source: str
) -> tuple[LedgerEntry | None, tuple[str, ...]]:
    """Return the pipeline's entry (None if it has never published here) and what could not be verified.

    Raises LedgerMissing, LedgerForeign or TableRewound when the table is not as it was left.
    """
    attempt = Attempt(engine, table)
    entry = read_entry(attempt.properties, pipeline)
    if entry is None:
        lost = attempt.last_snapshot_with("esker.pipeline", pipeline)
        if lost is not None:
            raise LedgerMissing(pipeline, str(table), lost)
    else:
        for what, theirs, ours in (
            ("project", entry.project, engine.project.project),
            ("source", entry.source, source),
        ):
            if theirs != ours:
                raise LedgerForeign(pipeline, str(table), what, theirs, ours)
    if check_descent(attempt, table):
        return entry, ()
    doubt = "whether the table was rolled back cannot be told: snapshots and old metadata have been removed"
    return entry, (doubt,)


def check_descent(attempt: Attempt, table: TableId) -> bool:
    """Raise TableRewound if what any pipeline published last is no longer in the table.

    Return False when nobody can tell any more.
    """
    head = read_head(attempt.properties)
    if head is None:
        return True
    descends = attempt.descends(head.snapshot, head.sequence)
    if descends is False:
        raise TableRewound(str(table), head.snapshot, attempt.current)
    return descends is True
