"""Whether the tables beside a table have all that it owes them. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable

from esker.engine.iceberg.view import View
from esker.errors import SideTableForeign
from esker.ledger.entry import read_head
from esker.ledger.owed import SIDES, Named, logged_at, logged_in, read_outbox


def logged_upto(table: str, uuid: str, view: View) -> int:
    """Return the last changeset in a side table, or raise SideTableForeign if it is not the one we know."""
    if view.uuid != uuid:
        raise SideTableForeign(table)
    at = logged_at(view.properties)
    if at is not None and view.descends(*at) is False:
        raise SideTableForeign(table)
    return logged_in(view.properties)


def is_settled(table: View, side: Callable[[str], View | None]) -> bool:
    """Tell whether a table owes nothing to the side tables that it names, and none is ahead of it.

    `side` opens one by its name. Raises SideTableForeign for one that is not as it was left, or not there.
    """
    entries = read_outbox(table.properties)
    head = read_head(table.properties)
    for name in SIDES:
        named = Named.by(table.properties, name)
        if named is None:
            continue
        opened = side(named.table)
        if opened is None:
            raise SideTableForeign(named.table)
        upto = logged_upto(named.table, named.uuid, opened)
        if any(name in entry.owed and entry.changeset > upto for entry in entries):
            return False
        if head is None or upto > head.changeset:
            return False
    return True
