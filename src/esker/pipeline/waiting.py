"""What waits in quarantine, told without Spark. `Undecided` is raised where Spark must read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.engine.iceberg.document import Document, Undecided
from esker.engine.iceberg.table_id import TableId
from esker.ledger.settled import is_settled
from esker.pipeline.tables import quarantine_of, table_of
from esker.reading.documents import Documents
from esker.reading.small_tables import all_rows

_RESOLVED = ("resolution", "of_changeset", "of_row")
_COLUMNS = ("changeset", "pipeline", "row", "rules", "reason", "quarantined_at")


@dataclass(frozen=True)
class Waiting:
    """Rows of one table that wait, by the rules that they break."""

    table: str
    pipeline: str
    rules: tuple[str, ...]
    rows: int
    first_at: datetime
    last_at: datetime
    example: str

    def as_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "pipeline": self.pipeline,
            "rules": list(self.rules),
            "rows": self.rows,
            "first_at": self.first_at.isoformat(),
            "last_at": self.last_at.isoformat(),
            "example": self.example,
        }


def waiting_here(documents: Documents, pipelines: Sequence[str]) -> list[Waiting]:
    """Return what `list_waiting` returns. Raises Undecided, and what is wrong with a ledger."""
    return [each for name in pipelines for each in _of(documents, name)]


def _of(documents: Documents, name: str) -> list[Waiting]:
    project = documents.project
    table = table_of(project, project.pipeline(name))
    own, quarantine = documents.find(table), documents.find(quarantine_of(project, table))
    if own is not None and not is_settled(own, lambda side: documents.find(TableId(table.catalog, side))):
        raise Undecided("something is owed to the tables beside it")
    if quarantine is None or quarantine.current is None:
        return []
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in _open_rows(quarantine):
        if row["pipeline"] == name:
            groups.setdefault(tuple(row["rules"]), []).append(row)
    found = [_waiting(table, name, rules, rows) for rules, rows in groups.items()]
    return sorted(found, key=lambda each: (-each.rows, each.rules))


def _open_rows(quarantine: Document) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a quarantine that are still waiting."""
    names = quarantine.schema.arrow.names
    # Those that were made before rows could be replayed have no column for it.
    rows = all_rows(quarantine, (*_COLUMNS, *(name for name in _RESOLVED if name in names)))
    done = {(row["of_changeset"], row["of_row"]) for row in rows if row.get("resolution") is not None}
    for row in rows:
        if row.get("resolution") is None and (row["changeset"], row["row"]) not in done:
            yield row


def _waiting(table: TableId, name: str, rules: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Waiting:
    # By the clock of this machine, as Spark hands moments to Python.
    moments = [row["quarantined_at"].astimezone().replace(tzinfo=None) for row in rows]
    return Waiting(
        table=str(table),
        pipeline=name,
        rules=rules,
        rows=len(rows),
        first_at=min(moments),
        last_at=max(moments),
        example=min(row["reason"] for row in rows),
    )
