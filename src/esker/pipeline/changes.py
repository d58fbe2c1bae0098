"""What changed in a table: its change log between two points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.change_log import CHANGESET, ROW
from esker.ledger.change_range import Point, changes_frame
from esker.pipeline.show import as_mapping


@dataclass(frozen=True)
class Changes:
    """Changes of a table, oldest first."""

    table: str
    since: int
    """Changesets after this one…"""
    until: int
    """…up to this one."""
    columns: tuple[str, ...]
    rows: list[Mapping[str, Any]]
    count: int
    """All changes in this range; `rows` may hold fewer."""

    def as_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "since": self.since,
            "until": self.until,
            "count": self.count,
            "changes": [dict(row) for row in self.rows],
        }


def read_changes(
    engine: Engine, table: TableId, since: Point | None, until: Point | None, limit: int
) -> Changes:
    """Return the changes after one point, up to and including another.

    Raises TableNotFound, NoChangeLog, UnknownPoint or ChangesForgotten.
    """
    frame, first, last = changes_frame(engine, table, since, until)
    with explained(f'cannot read the changes of table "{table}"', engine.log):
        count = frame.count()
        rows = [as_mapping(row) for row in frame.orderBy(CHANGESET, ROW).limit(limit).collect()]
    return Changes(str(table), first, last, tuple(frame.columns), rows, count)
