"""The outbox: what a publish still owes to the tables beside its table.

The commit that decides a batch names the files of its change rows, and of its quarantined rows, in the
table's property `esker.outbox`. Whoever comes next appends them to the change log and the quarantine,
in the order of the changesets, each once: these tables say in their own properties how far they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import LogAhead, LogGap, OutboxFull, SideTableLost
from esker.ledger.entry import read_head
from esker.ledger.logged import gap_property, logged_properties, look_at, reached, went_on
from esker.ledger.owed import LOG, OUTBOX, SIDES, OutboxEntry, as_text, read_outbox
from esker.ledger.rebuild import rebuild
from esker.ledger.retention import Retained
from esker.ledger.side_table import SideTable

__all__ = ["OUTBOX", "OutboxEntry", "check_room", "drain", "lag", "outbox_property", "read_outbox"]

_LIMIT = 3_500
_ENTRY = 200
"""Bytes to keep free for one more entry."""
_TRIES = 3


def lag(properties: Mapping[str, str], logged: int) -> int:
    """Return how many changesets wait to be logged."""
    entries = read_outbox(properties)
    return sum(LOG in entry.owed and entry.changeset > logged for entry in entries)


def check_room(table: str, entries: Iterable[OutboxEntry]) -> None:
    """Raise OutboxFull unless one more entry fits."""
    waiting = [entry.as_json() for entry in entries]
    if len(as_text(waiting)) + _ENTRY > _LIMIT:
        raise OutboxFull(table, len(waiting))


def outbox_property(entries: Iterable[OutboxEntry]) -> dict[str, str]:
    """Return the property that holds an outbox."""
    return {OUTBOX: as_text([entry.as_json() for entry in entries])}


def drain(
    engine: Engine,
    table: TableId,
    properties: Mapping[str, str],
    *,
    ready: Mapping[tuple[str, int], StagedFiles] | None = None,
    before: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Append what the outbox holds and the side tables lack; return how far each side table is.

    Safe to call by anybody at any time. `properties` are the table's, read before the side tables are:
    the other way round would see gaps that are none. `ready` has the files of changesets that this
    process staged itself. `before` is called before each append. Raises LogGap, LogAhead,
    SideTableForeign or SideTableLost when a side table is not as it was left, and the errors of a store
    or catalog that cannot be written.
    """
    entries = read_outbox(properties)
    head = read_head(properties)
    found = {}
    for name in SIDES:
        side = SideTable.registered(properties, name, table.catalog)
        if side is None:
            continue
        own = [entry for entry in entries if name in entry.owed]
        known = reached(side)
        if known is None or any(entry.changeset > known for entry in own):
            known = _drain_into(engine, table, side, own, ready or {}, before)
            went_on(side, known)
        if head is not None and known > head.changeset:
            # Perhaps others went on meanwhile, and the properties are of the past; or both were restored.
            head = read_head(Attempt(engine, table).properties)
            known = look_at(side, Attempt(engine, side.id))
        if head is not None and known > head.changeset:
            # The table went back to an older copy: its new numbers would be taken for logged ones.
            raise LogAhead(str(side.id), known, str(table), head.changeset)
        found[name] = known
    return found


def _drain_into(
    engine: Engine,
    table: TableId,
    side: SideTable,
    entries: list[OutboxEntry],
    ready: Mapping[tuple[str, int], StagedFiles],
    before: Callable[[], None],
) -> int:
    failures = 0
    while True:
        attempt = Attempt(engine, side.id)
        have = look_at(side, attempt)
        todo = [entry for entry in entries if entry.changeset > have]
        if not todo:
            return have
        entry = todo[0]
        if side.property == LOG and entry.after != have:
            raise LogGap(str(side.id), have, entry.changeset)
        try:
            staged = ready.get((side.property, entry.changeset)) or _adopt(attempt, side, entry)
            if staged is None:
                staged = rebuild(engine, table, side, entry.changeset, entry.snapshot)
            _append(attempt, side, entry, staged, have)
            before()
            attempt.swap()
        except SwapFailed as error:
            # Perhaps it landed, perhaps somebody else was faster: the side table tells.
            failures += 1
            if failures == _TRIES:
                raise SideTableLost(str(side.id), str(error)) from error
        else:
            if entry is todo[-1]:
                return entry.changeset


def _adopt(attempt: Attempt, side: SideTable, entry: OutboxEntry) -> StagedFiles | None:
    """Return the staged files of an entry; None when those of the change log are gone."""
    owed = entry.owed[side.property]
    names = ((owed, 0),) if isinstance(owed, str) else owed
    lost = [name for name, _ in names if not attempt.store.exists(side.place(name))]
    if not lost and isinstance(owed, str):
        names = side.places(attempt.store, owed)
        lost = [name for name, _ in names if not attempt.store.exists(side.place(name))]
    if not lost:
        return attempt.adopt([(side.place(name), size) for name, size in names])
    if side.property == LOG:
        return None
    raise SideTableLost(str(side.id), f"the staged file {lost[0]} of changeset {entry.changeset} is gone")


def _append(attempt: Attempt, side: SideTable, entry: OutboxEntry, staged: StagedFiles, have: int) -> None:
    summary = {"esker.changeset": str(entry.changeset), "esker.snapshot": str(entry.snapshot)}
    snapshot, sequence = attempt.append(staged, summary)
    properties = logged_properties(entry.changeset, snapshot, sequence)
    retained = Retained.of(attempt)
    if side.property == LOG and retained.looked_at is None:
        properties |= replace(retained, looked_at=datetime.now(UTC)).property()
    if side.property == LOG and entry.after != entry.changeset - 1:
        properties |= gap_property(attempt.properties, have + 1, entry.changeset - 1)
    attempt.set(properties)
