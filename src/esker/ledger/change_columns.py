"""Esker's own columns of a change log. They need no Spark to be named."""

from __future__ import annotations

from collections.abc import Sequence

from esker.project.types import Column, Plain

CHANGESET = "_esker_changeset"
OP = "_esker_op"
HASH_BEFORE = "_esker_hash_before"
HASH_AFTER = "_esker_hash_after"
ORDER = "_esker_order"
PIPELINE = "_esker_pipeline"
RUN = "_esker_run"
BATCH = "_esker_batch"
ROW = "_esker_row"
COMMITTED_AT = "_esker_committed_at"


def log_columns(columns: Sequence[Column], order_by: str | None) -> tuple[Column, ...]:
    """Return the columns of a change log for a table's columns."""
    own = [
        Column(CHANGESET, Plain("bigint"), required=True, doc="Number of the changeset, 1, 2, 3…"),
        Column(OP, Plain("string"), required=True, doc="insert, update, delete or undelete"),
        Column(HASH_BEFORE, Plain("bigint"), doc="Row hash before the change"),
        Column(HASH_AFTER, Plain("bigint"), doc="Row hash after the change"),
        Column(PIPELINE, Plain("string"), required=True),
        Column(RUN, Plain("string"), required=True),
        Column(BATCH, Plain("string"), required=True),
        Column(ROW, Plain("bigint"), required=True, doc="Place of the row in its batch"),
        Column(COMMITTED_AT, Plain("timestamp"), required=True),
    ]
    for column in columns:
        if order_by is not None and column.name.lower() == order_by.lower():
            own.append(Column(ORDER, column.type, doc="Order value that decided"))
    # Old changes lack what was added later: nothing of the row itself is required here.
    return (*own, *(Column(column.name, column.type, doc=column.doc) for column in columns))
