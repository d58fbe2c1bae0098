"""How far a side table is: the last changeset that it holds, as it says itself."""

from __future__ import annotations

from collections.abc import Mapping

from esker.engine.iceberg.commit import Attempt
from esker.ledger.owed import GAPS, LOGGED, LOGGED_AT, as_text, first_kept, gaps_in, logged_in
from esker.ledger.settled import logged_upto
from esker.ledger.side_table import SideTable
from esker.ledger.stored_json import as_document

__all__ = [
    "forget",
    "gap_property",
    "logged_in",
    "logged_properties",
    "look_at",
    "reached",
    "skipped",
    "went_on",
]

_MOST_OF_GAPS = 1_000
"""Bytes. Hive's metastore and others cut or refuse long properties."""
_reached: dict[str, int] = {}
"""How far side tables are, by uuid, as this process has seen them: only a repair takes them back."""


def reached(side: SideTable) -> int | None:
    """Return how far a side table was when this process looked last."""
    return _reached.get(side.uuid)


def look_at(side: SideTable, attempt: Attempt) -> int:
    """Return the last changeset in a side table, or raise SideTableForeign if it is not the one we know."""
    _reached[side.uuid] = logged_upto(side.id.name, side.uuid, attempt)
    return _reached[side.uuid]


def went_on(side: SideTable, changeset: int) -> None:
    """Take note that a side table holds a changeset now."""
    _reached[side.uuid] = changeset


def forget(uuid: str) -> None:
    """Look again how far a side table is: it was repaired."""
    _reached.pop(uuid, None)


def gap_property(properties: Mapping[str, str], first: int, last: int) -> dict[str, str]:
    """Return the property by which a change log says which changesets it lacks, with some more.

    What was forgotten since is no gap any more. Where the gaps are very many, the oldest become one: what is
    between them could be read up to the next gap only.
    """
    gaps = [gap for gap in gaps_in(properties) if gap[1] >= first_kept(properties)]
    if gaps and gaps[-1][1] + 1 == first:
        first = gaps.pop()[0]
    gaps.append((first, last))
    while len(as_text(gaps)) > _MOST_OF_GAPS:
        gaps[:2] = [(gaps[0][0], gaps[1][1])]
    return {GAPS: as_text(gaps)}


def skipped(properties: Mapping[str, str], upto: int) -> dict[str, str]:
    """Return the properties of a change log that lacks all behind its last changeset, up to another one."""
    return {LOGGED: str(upto), **gap_property(properties, logged_in(properties) + 1, upto)}


def logged_properties(changeset: int, snapshot: int, sequence: int) -> dict[str, str]:
    """Return the properties by which a side table says how far it is."""
    return {LOGGED: str(changeset), LOGGED_AT: as_document({"snapshot": snapshot, "sequence": sequence})}
