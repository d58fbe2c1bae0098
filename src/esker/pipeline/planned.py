"""What a run will do, as a value, made of what is declared and what was observed: with Spark or without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from esker.contracts.evolution import Added
from esker.engine.iceberg.table_id import TableId
from esker.engine.iceberg.table_metadata import Table
from esker.errors import (
    CatalogWithoutFence,
    ColumnsFrozen,
    EskerError,
    NoColumns,
    SideTableForeign,
    TypeConflict,
)
from esker.ledger.entry import LedgerEntry
from esker.ledger.owed import LOG
from esker.load.keys import check_key
from esker.pipeline.alterations import alterations, creation, log_alterations
from esker.pipeline.differences import Difference, differences
from esker.pipeline.table_changes import TableChange
from esker.pipeline.tables import log_of, table_of
from esker.project import Pipeline, Project
from esker.project.contract import Contract
from esker.project.reserved import is_own
from esker.project.types import Column
from esker.sources import Fetched, Sent, Slice

Find = Callable[[TableId], Table | None]
"""Returns a table as it is now; None when there is none."""

NOTHING_NEW = "the source has nothing new"
NO_ROWS = "the source holds no rows yet"


@dataclass(frozen=True)
class PipelinePlan:
    """What one run of one pipeline will do."""

    pipeline: str
    table: TableId
    mode: str
    changes: tuple[TableChange, ...]
    slices: tuple[Slice, ...]
    columns: tuple[Column, ...]
    """The table's columns after the changes, without Esker's own."""
    sent: tuple[str, ...]
    """The columns that the source sends."""
    entry: LedgerEntry | None
    notes: tuple[str, ...] = ()
    unknown: Added = ()
    """Columns that are sent and that the table does not get: rows that carry them go to the quarantine."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The table's properties, as they were when the plan was made."""
    differences: tuple[Difference, ...] = ()
    """How contract, table and source differ."""
    failures: tuple[EskerError, ...] = ()
    """Why parts of the source could not be had; the slices leave them out."""
    has_more: bool = False
    """There is more beyond the slices."""
    error: EskerError | None = None
    """What keeps the run from beginning: one of these differences, the declaration, or the source."""

    @property
    def is_empty(self) -> bool:
        """Nothing to do."""
        return not self.changes and not self.slices and self.error is None

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "table": str(self.table),
            "mode": self.mode,
            "nothing_to_do": self.is_empty,
            "changes": [change.as_json() for change in self.changes],
            "batches": [
                {
                    "reads": piece.summary,
                    "bytes": piece.bytes,
                    "position": {"from": piece.start, "to": piece.end},
                }
                for piece in self.slices
            ],
            "columns": {column.name: str(column.type) for column in self.columns},
            "differences": [difference.as_json() for difference in self.differences],
            "notes": list(self.notes),
            "failures": [failure.as_json() for failure in self.failures],
            "error": self.error.as_json() if self.error is not None else None,
        }


@dataclass(frozen=True)
class Observed:
    """What a plan is made from, beside the declaration."""

    present: Table | None
    entry: LedgerEntry | None
    doubts: tuple[str, ...]
    """What people should know of the entry."""
    fetched: Fetched
    """What the source has that is new."""
    sent: Sent
    """The columns of that."""


def check_fence(project: Project, name: str, table: Mapping[str, str] | None) -> None:
    """Raise CatalogWithoutFence where a table, with these properties, is not kept safe from two writers."""
    pipeline = project.pipeline(name)
    if pipeline.is_keyed and (why := project.why_not_keyed(pipeline, table)) is not None:
        raise CatalogWithoutFence(name, pipeline.mode, why)


def planned(
    project: Project,
    name: str,
    observed: Observed,
    *,
    find: Find,
    has_rows: Callable[[], bool],
    check: Callable[[Contract, tuple[Column, ...]], None],
    unchecked: Callable[[Contract], tuple[str, ...]],
) -> PipelinePlan:
    """Return what a run does about what was observed, or the differences that keep it from beginning.

    `has_rows` tells whether there are rows in what is new, `check` raises InvalidRule for a rule that cannot
    be asked of these columns, and `unchecked` returns what of a contract is not checked.
    """
    pipeline = project.pipeline(name)
    contract = project.contract(name)
    table = table_of(project, pipeline)
    present, fetched, sent = observed.present, observed.fetched, observed.sent
    slices = fetched.slices
    seen = PipelinePlan(
        pipeline=name,
        table=table,
        mode=pipeline.mode,
        changes=(),
        slices=tuple(slices),
        columns=(),
        sent=tuple(column.name for column in sent.columns),
        entry=observed.entry,
        notes=(
            *project.catalog_of(pipeline.catalog).warnings(),
            *pipeline.source.warnings(),
            *observed.doubts,
            *fetched.notes,
            *([] if slices or fetched.failures or fetched.notes else [NOTHING_NEW]),
        ),
        failures=fetched.failures,
        has_more=fetched.has_more,
        properties=present.properties if present is not None else {},
        differences=differences(pipeline, contract, present, sent),
    )
    try:
        if present is None:
            altered = creation(pipeline, table, sent, contract, name)
        else:
            altered = alterations(pipeline, present, sent, contract, name)
    except (TypeConflict, ColumnsFrozen) as error:
        return replace(seen, error=error)
    if present is None and not altered.columns and slices:
        if has_rows():
            raise NoColumns(name, str(table))
        return replace(seen, slices=(), sent=(), notes=(NO_ROWS,))
    changes, columns = altered.changes, altered.columns
    notes = [*seen.notes, *altered.notes]
    if contract is not None:
        check(contract, columns)
        notes += unchecked(contract)
    if columns and pipeline.is_keyed:
        check_key(pipeline, columns)
        if pipeline.changes:
            changes = (*changes, *_log_changes(project, find, pipeline, columns, present))
    return replace(
        seen,
        changes=changes,
        columns=tuple(column for column in columns if not is_own(column.name)),
        notes=tuple(notes),
        unknown=altered.unknown,
    )


def _log_changes(
    project: Project, find: Find, pipeline: Pipeline, columns: tuple[Column, ...], stored: Table | None
) -> tuple[TableChange, ...]:
    """Return what brings the change log to the table's columns, or raise SideTableForeign."""
    log = log_of(project, table_of(project, pipeline))
    present = find(log)
    if present is None and stored is not None and LOG in stored.properties:
        # Another log in its place would begin in the middle and not say so.
        raise SideTableForeign(str(log))
    return log_alterations(pipeline, log, present, columns)


def described(plan: PipelinePlan) -> str:
    """Return what a run is going to do, in words."""
    if not plan.slices:
        return "nothing to do" if plan.is_empty else "table changes only"
    return ", ".join(piece.summary for piece in plan.slices)
