"""The quarantine `<table>__quarantine`: rows that could not be loaded, with the reason.

It is filled from the outbox, like the change log: a row is there exactly once, and only if the batch it
came with was published.
"""

from __future__ import annotations

from typing import Any

from esker.ledger.side_table import QUARANTINE, OpenSide, Stamp
from esker.project.types import Array, Column, Plain

QUARANTINE_COLUMNS = (
    Column("changeset", Plain("bigint"), required=True, doc="The changeset that it came with"),
    Column("pipeline", Plain("string"), required=True),
    Column("run", Plain("string"), required=True),
    Column("batch", Plain("string"), required=True),
    Column("row", Plain("bigint"), required=True, doc="Place of the row in its batch"),
    Column("origin", Plain("string"), doc="The file that it stood in"),
    Column("rules", Array(Plain("string")), doc="The rules that it broke"),
    Column("reason", Plain("string"), required=True, doc="Why, in words"),
    Column("payload", Plain("string"), doc="The row, as JSON"),
    Column("quarantined_at", Plain("timestamp"), required=True),
)


class Quarantine(OpenSide):
    """The quarantine of one table. Rows that are staged have row, origin, rules, reason and payload."""

    property = QUARANTINE

    def shared(self, stamp: Stamp) -> dict[str, Any]:
        return {
            "changeset": stamp.changeset,
            "pipeline": stamp.pipeline,
            "run": stamp.run,
            "batch": stamp.batch,
            "quarantined_at": stamp.moment,
        }
