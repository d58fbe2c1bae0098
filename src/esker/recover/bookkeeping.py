"""What a table remembers of its loads, compared with what it and the tables beside it hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import (
    EskerError,
    LedgerTooNew,
    LedgerUnreadable,
    LogAhead,
    LogGap,
    SideTableForeign,
    TableRewound,
)
from esker.ledger.delete_memory import longest_late
from esker.ledger.entry import pipelines_in, read_entry, read_head
from esker.ledger.foreign import foreign_ranges
from esker.ledger.logged import logged_in
from esker.ledger.outbox import OutboxEntry, read_outbox
from esker.ledger.owed import gaps_in, logged_at, trimmed
from esker.ledger.side_table import LOG, SIDES, SideTable
from esker.recover.finding import Examined, Finding

_BY_HAND = (
    "Set the property again to its value in an earlier metadata file of the table (folder metadata, key "
    "properties), with any engine."
)


_BESIDE = (logged_in, logged_at, gaps_in, trimmed, longest_late)
"""What reads the properties of side tables: what one of them cannot read ends runs and deliveries."""


@dataclass(frozen=True)
class Bookkeeping:
    """The ledger, head and outbox of one table, and how far its side tables are."""

    engine: Engine
    table: TableId
    properties: Mapping[str, str]
    beside: Mapping[str, Examined]
    """The side tables that were looked at, by name."""

    def findings(self) -> Iterator[Finding]:
        """Yield what does not fit together."""
        unreadable = list(self._unreadable())
        yield from unreadable
        if unreadable:
            return  # all else is compared with them
        head = read_head(self.properties)
        attempt = Attempt(self.engine, self.table)
        if head is not None and attempt.descends(head.snapshot, head.sequence) is False:
            yield _told(
                "ledger", TableRewound(str(self.table), head.snapshot, attempt.current), head.snapshot
            )
        published = head.changeset if head is not None else 0
        for name, last in self.logged().items():
            if last > published:
                yield _log_ahead(LogAhead(name, last, str(self.table), published))
        for name in SIDES:
            side = SideTable.registered(self.properties, name, self.table.catalog)
            if side is not None:
                yield from self._side(side)

    def logged(self) -> dict[str, int]:
        """Return how far the side tables are that can be read, by their names.

        Also those that the table does not name: it may have gone back to a time before it knew them.
        """
        return {name: far for name, each in self.beside.items() if (far := logged_in(each.properties))}

    def _unreadable(self) -> Iterator[Finding]:
        own, catalog = self.properties, self.table.catalog
        readers: list[Callable[[], object]] = [partial(read_head, own), partial(read_outbox, own)]
        readers += [partial(read_entry, own, name) for name in pipelines_in(own)]
        readers += [partial(SideTable.registered, own, name, catalog) for name in SIDES]
        readers.append(partial(foreign_ranges, own))
        yield from _unread(readers)
        for name, each in self.beside.items():
            for finding in _unread([partial(read, each.properties) for read in _BESIDE]):
                yield replace(finding, what=f'table "{name}": {finding.what}')

    def _side(self, side: SideTable) -> Iterator[Finding]:
        examined = self.beside.get(side.id.name)
        if examined is None or examined.pointer is None:
            error = SideTableForeign(str(side.id))
            yield Finding(
                "log", f'table "{side.id}" is not in the catalog', "The table counts on it.", error.remedy
            )
            return
        if examined.document is None:
            return  # told of that table
        if examined.document["table-uuid"] != side.uuid:
            yield _told("log", SideTableForeign(str(side.id)))
            return
        have = logged_in(examined.properties)
        waiting = [entry for entry in read_outbox(self.properties) if side.property in entry.owed]
        waiting = [entry for entry in waiting if entry.changeset > have]
        if waiting and side.property == LOG and waiting[0].after != have:
            yield _told("log", LogGap(str(side.id), have, waiting[0].changeset))
        for entry in waiting:
            yield from self._staged(side, entry, examined)

    def _staged(self, side: SideTable, entry: OutboxEntry, examined: Examined) -> Iterator[Finding]:
        """Yield a finding for staged files of an entry that are gone."""
        assert examined.pointer is not None
        files = examined.pointer.files
        owed = entry.owed[side.property]
        names = [owed] if isinstance(owed, str) else [name for name, _ in owed]
        lost = [name for name in names if files.size(side.place(name)) is None]
        if not lost:
            return
        if side.property == LOG:
            yield Finding(
                "outbox",
                f'a staged file of changeset {entry.changeset} for change log "{side.id}" is gone',
                f"Snapshot {entry.snapshot} and the one before it tell its changes, while both are there.",
                "The next run makes it anew.",
                side.place(lost[0]),
                entry.snapshot,
                is_damage=False,
            )
        else:
            yield Finding(
                "outbox",
                f'a staged file of changeset {entry.changeset} for table "{side.id}" is gone',
                "Its rows are nowhere else, and runs stop until it is there.",
                "Restore the file from the store's older versions or a backup.",
                side.place(lost[0]),
                entry.snapshot,
            )


LOG_AHEAD = "log_ahead"
"""The check that `--repair` mends by numbering on behind the log."""


def _log_ahead(error: LogAhead) -> Finding:
    return Finding(
        LOG_AHEAD,
        error.message,
        error.reason,
        "esker fsck --repair numbers changesets on behind those of the log, with a gap: consumers must read "
        "the table anew.",
    )


def _told(check: str, error: EskerError, snapshot: int | None = None) -> Finding:
    return Finding(check, error.message, error.reason, error.remedy, snapshot=snapshot)


def _unread(readers: Iterable[Callable[[], object]]) -> Iterator[Finding]:
    """Yield a finding for each property that cannot be read."""
    for read in readers:
        try:
            read()
        except LedgerUnreadable as error:
            yield Finding("ledger", error.message, error.reason, _BY_HAND)
        except LedgerTooNew as error:
            yield Finding("ledger", error.message, error.reason, error.remedy, is_damage=False)
