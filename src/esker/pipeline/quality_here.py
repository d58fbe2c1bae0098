"""The quality of a table over time, read by this process. `Undecided` is raised where Spark must read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from esker.engine.iceberg.table_id import TableId
from esker.pipeline.figures import Figure, Moment, figures
from esker.pipeline.tables import quality_of
from esker.reading.documents import Documents
from esker.reading.small_tables import all_rows

_COLUMNS = ("metric", "kind", "value", "passed", "measured_at", "snapshot", "changeset")


def quality_here(
    documents: Documents, table: TableId, as_of: str | None, beside: str | None, *, held: bool
) -> list[Figure]:
    """Return what `read_quality` returns. Raises NoQuality, UnknownPoint and Undecided."""
    own, history = documents.find(table), documents.find(quality_of(documents.project, table))
    rows: list[Mapping[str, Any]] = []
    if history is not None:
        has_held = "held" in history.schema.arrow.names  # not in histories from before held batches
        rows = all_rows(history, (*_COLUMNS, *(["held"] if has_held else [])))
        rows = [row for row in rows if not has_held or bool(row["held"]) == held]

    def stored(point: Moment | None) -> Iterable[Figure]:
        newest: dict[tuple[str, str], Mapping[str, Any]] = {}
        for row in rows:
            key = row["kind"], row["metric"]
            if _is_upto(row, point) and (key not in newest or _place(row) > _place(newest[key])):
                newest[key] = row
        return [_figure(row) for row in newest.values()]

    line = own.line() if own is not None else ()
    return figures(str(table), line, stored if history is not None else None, as_of, beside, held=held)


def _is_upto(row: Mapping[str, Any], point: Moment | None) -> bool:
    if isinstance(point, int):
        return bool(row["changeset"] <= point)
    return point is None or bool(row["measured_at"] <= point)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["changeset"], row["measured_at"]


def _figure(row: Mapping[str, Any]) -> Figure:
    values = {name: row[name] for name in _COLUMNS}
    return Figure(**values | {"measured_at": row["measured_at"].astimezone(UTC)})
