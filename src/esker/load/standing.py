"""Where a pipeline stands in a table: its ledger entry, after a look at whether it can be trusted."""

from __future__ import annotations

from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.view import View
from esker.errors import LedgerForeign, LedgerMissing, TableRewound
from esker.ledger.entry import LedgerEntry, read_entry, read_head
from esker.ledger.foreign import foreign
from esker.project.reserved import HASH_COLUMN


def standing(
    view: View, table: TableId, pipeline: str, source: str, project: str
) -> tuple[LedgerEntry | None, tuple[str, ...]]:
    """Return the pipeline's entry (None if it has never published here) and what people should know.

    Raises LedgerMissing, LedgerForeign or TableRewound when the table is not as it was left.
    """
    entry = read_entry(view.properties, pipeline)
    if entry is None:
        lost = view.last_snapshot_with("esker.pipeline", pipeline)
        if lost is not None:
            raise LedgerMissing(pipeline, str(table), lost)
    else:
        for what, theirs, ours in (
            ("project", entry.project, project),
            ("source", entry.source, source),
        ):
            if theirs != ours:
                raise LedgerForeign(pipeline, str(table), what, theirs, ours)
    notes = []
    if not check_descent(view, table):
        notes.append(
            "whether the table was rolled back cannot be told: snapshots and old metadata have been removed"
        )
    if note := foreign_note(view):
        notes.append(note)
    return entry, tuple(notes)


def is_rewound(view: View) -> bool:
    """Tell whether what any pipeline published last is no longer in the table."""
    head = read_head(view.properties)
    return head is not None and view.descends(head.snapshot, head.sequence) is False


def foreign_note(view: View) -> str | None:
    """Return what others did to the table since the last publish, in words, if they did anything."""
    found = foreign(view)
    if found.is_known:
        return None
    is_hashed = HASH_COLUMN in view.schema.arrow.names
    return found.note(": rows in their files are compared by content" if is_hashed else "")


def check_descent(view: View, table: TableId) -> bool:
    """Raise TableRewound if what any pipeline published last is no longer in the table.

    Return False when nobody can tell any more.
    """
    head = read_head(view.properties)
    if head is None:
        return True
    descends = view.descends(head.snapshot, head.sequence)
    if descends is False:
        raise TableRewound(str(table), head.snapshot, view.current)
    return descends is True
