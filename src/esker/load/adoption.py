"""Take a table over as it is: one commit that writes a ledger and a head, and no row.

Files that are taken in by the same commit stay where they lie; only their footers are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rounds import rounds
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import PublishConflict
from esker.ledger.entry import Head, LedgerEntry, as_properties, read_entry, read_head
from esker.ledger.foreign import all_foreign, foreign, foreign_property
from esker.ledger.side_table import SideTable
from esker.load.standing import is_rewound

_TRIES = 10


@dataclass(frozen=True)
class TakeOver:
    """What is taken over, and for whom."""

    table: TableId
    pipeline: str
    source: str
    run: str
    logged: int
    """The last changeset in the change log, which may be older than the table: numbers go on behind it."""
    log: SideTable | None
    files: Sequence[tuple[str, int]] = ()
    """Location and size of Parquet files to take in."""


def take_over(engine: Engine, what: TakeOver) -> SnapshotId:
    """Write the ledger; return the snapshot that the table has then. Raises PublishConflict.

    The position of the pipeline stays where it was. A changeset number is left out where the table was
    rolled back: the gap in the log tells readers of it.
    """
    failure: SwapFailed | None = None
    for may_try in rounds(_TRIES):
        attempt = Attempt(engine, what.table)
        entry, head = read_entry(attempt.properties, what.pipeline), read_head(attempt.properties)
        if entry is not None and entry.run == what.run:
            return entry.snapshot
        if not may_try:
            break
        try:
            _build(engine, attempt, what, entry, head)
            attempt.swap()
        except SwapFailed as error:
            failure = error  # whether it landed, the ledger tells
    raise PublishConflict(str(what.table), _TRIES, str(failure))


def _build(
    engine: Engine, attempt: Attempt, what: TakeOver, entry: LedgerEntry | None, head: Head | None
) -> None:
    rewound = is_rewound(attempt)
    found = all_foreign(attempt) if rewound else foreign(attempt)
    properties = foreign_property(attempt, found)
    published = head.changeset if head is not None else 0
    known = max(published, what.logged)
    # A log that is ahead tells of changes that are no longer there: that, too, is a gap.
    changeset = known + 1 if rewound or what.logged > published else known
    summary = {"esker.pipeline": what.pipeline, "esker.run": what.run}
    if what.files:
        snapshot, sequence = attempt.append(attempt.adopt(what.files), summary)
    else:
        # An empty append: a property alone would not be compared by every catalog.
        snapshot, sequence = attempt.touch(summary)
    mine = LedgerEntry(
        position=entry.position if entry is not None else None,
        changeset=changeset,
        run=what.run,
        writer=str(uuid4()),
        epoch=(entry.epoch if entry is not None else 0) + 1,
        snapshot=snapshot,
        sequence=sequence,
        project=engine.project.project,
        source=what.source,
    )
    properties |= as_properties(what.pipeline, mine, Head(changeset, snapshot, sequence))
    if what.log is not None:
        properties |= what.log.registration()
    attempt.set(properties)
