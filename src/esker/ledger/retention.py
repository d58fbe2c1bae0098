"""How long changes are kept: old ones leave the change log, in whole files.

A changeset's rows stand in files of their own, so forgetting takes a commit of metadata and reads no row. A
file that somebody merged of old and new changes stays until all of it is old. The table never reads its
log: what is forgotten is gone for those who come late, and for nobody else. The files themselves are
removed from the store when the log's old snapshots are expired.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import SideTableLost
from esker.ledger.change_log import CHANGESET, COMMITTED_AT
from esker.ledger.owed import TRIMMED, trimmed
from esker.ledger.reindexes import REINDEX_TAG
from esker.ledger.stored_json import as_document
from esker.ledger.tag_names import CONSUMER_TAG, START_TAG

_EVERY = timedelta(days=1)
_TRIES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Retained:
    """What a change log still holds."""

    first: int
    """The oldest changeset that is there in full."""
    looked_at: datetime | None
    """When somebody looked last whether there is something to forget; None before the first change."""

    @classmethod
    def of(cls, attempt: Attempt) -> Retained:
        known = trimmed(attempt.properties)
        return cls(known.first, known.at) if known is not None else cls(1, None)

    def is_due(self, now: datetime) -> bool:
        """Tell whether it is time to look again."""
        return self.looked_at is not None and now - self.looked_at >= _EVERY

    def property(self) -> dict[str, str]:
        """Return the property by which the log says it."""
        at = self.looked_at.isoformat() if self.looked_at else None
        return {TRIMMED: as_document({"first": self.first, "at": at})}


def trim(engine: Engine, log: TableId, keep: timedelta, now: datetime) -> Retained:
    """Take changes out of a log that are older than `keep` and that all consumers have read.

    Returns what it holds afterwards. Raises SideTableLost when the log cannot be written.
    """
    failure: SwapFailed | None = None
    for _ in range(_TRIES):
        attempt = Attempt(engine, log)
        try:
            present = Retained.of(attempt).first
            retained = Retained(max(_first_kept(attempt, now - keep), present), now)
            if retained.first > present:
                attempt.remove(CHANGESET, retained.first - 1, {"esker.trimmed": str(retained.first)})
            attempt.set(retained.property())
            attempt.swap()
        except SwapFailed as error:
            # Somebody appended meanwhile, or it landed and the answer was lost: look again.
            failure = error
        else:
            return retained
    raise SideTableLost(str(log), f"old changes could not be taken out: {failure}")


def _first_kept(attempt: Attempt, before: datetime) -> int:
    """Return the first changeset that stays: those before it are old, and read by all, as whole files."""
    number, moment = (attempt.schema.ids[name] for name in (CHANGESET, COMMITTED_AT))
    oldest = (before - _EPOCH) // timedelta(microseconds=1)
    files = []
    for file in attempt.files.data:
        low, high, newest = file.lowest(number), file.highest(number), file.highest(moment)
        if low is None or high is None or newest is None:
            return 1  # somebody wrote files that do not tell what is in them
        files.append((low, high, newest < oldest))
    # Changes are forgotten from the beginning on, also where the clocks of two writers disagree.
    first = min(
        [*(low for low, _, is_old in files if not is_old), *(read + 1 for read in _read(attempt))],
        default=max((high + 1 for _, high, _ in files), default=1),
    )
    while torn := [low for low, high, _ in files if low < first <= high]:
        first = min(torn)
    return first


def _read(attempt: Attempt) -> list[int]:
    """Return the changesets up to which consumers have read, or behind which they will after a reindex."""
    read = []
    for name, snapshot in attempt.tags.items():
        if name.startswith(START_TAG):
            read.append(0)
        if name.startswith((CONSUMER_TAG, REINDEX_TAG)):
            changeset = attempt.summary_at(snapshot, "esker.changeset")
            # A tag that nobody can place protects everything.
            read.append(int(changeset) if changeset is not None else 0)
    return read
