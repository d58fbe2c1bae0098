"""How far a side table is: the last changeset that it holds, as it says itself."""

from __future__ import annotations

import json

from esker.engine.iceberg.commit import Attempt
from esker.errors import SideTableForeign
from esker.ledger.side_table import SideTable, as_text

_LOGGED = "esker.logged"
_LOGGED_AT = "esker.logged.at"

_reached: dict[str, int] = {}
"""How far side tables are, by uuid, as this process has seen them: they never go back."""


def reached(side: SideTable) -> int | None:
    """Return how far a side table was when this process looked last."""
    return _reached.get(side.uuid)


def look_at(side: SideTable, attempt: Attempt) -> int:
    """Return the last changeset in a side table, or raise SideTableForeign if it is not the one we know."""
    if attempt.uuid != side.uuid:
        raise SideTableForeign(str(side.id))
    at = attempt.properties.get(_LOGGED_AT)
    if at is not None:
        known = json.loads(at)
        if attempt.descends(known["snapshot"], known["sequence"]) is False:
            raise SideTableForeign(str(side.id))
    _reached[side.uuid] = int(attempt.properties.get(_LOGGED, "0"))
    return _reached[side.uuid]


def went_on(side: SideTable, changeset: int) -> None:
    """Take note that a side table holds a changeset now."""
    _reached[side.uuid] = changeset


def logged_properties(changeset: int, snapshot: int, sequence: int) -> dict[str, str]:
    """Return the properties by which a side table says how far it is."""
    return {_LOGGED: str(changeset), _LOGGED_AT: as_text({"snapshot": snapshot, "sequence": sequence})}
