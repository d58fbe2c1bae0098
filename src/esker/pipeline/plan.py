"""Decide what a run will do, as a value. `esker plan` prints it, `esker run` executes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from esker.contracts.evolution import Added, find
from esker.contracts.inference import infer_columns
from esker.contracts.inference_here import infer_from
from esker.engine.failures import explained
from esker.engine.iceberg.table import Table, TableId, find_table
from esker.engine.session import Engine
from esker.errors import (
    BackfillUnsuitable,
    CatalogWithoutFence,
    ColumnsFrozen,
    EskerError,
    NoColumns,
    ReservedName,
    SideTableForeign,
    TypeConflict,
)
from esker.ledger.entry import LedgerEntry
from esker.ledger.remembered import recall
from esker.ledger.side_table import LOG
from esker.ledger.state import State
from esker.load.keys import check_key
from esker.load.standing import standing
from esker.pipeline.alterations import alterations, creation, log_alterations
from esker.pipeline.differences import Difference, differences
from esker.pipeline.metadata import TableMetadata
from esker.pipeline.rules import check_rules, unchecked
from esker.pipeline.table_changes import TableChange
from esker.pipeline.tables import files_table_of, log_of, table_of
from esker.project import Pipeline, Project
from esker.project.reserved import is_own, why_reserved
from esker.project.types import Column, Plain
from esker.sources import Opening, Reader, Sent, Slice, Span, reader
from esker.sources.transformed import TransformedReader

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


def plan_pipeline(engine: Engine, state: State, name: str, source: Reader) -> PipelinePlan:
    """Look at source, ledger and table, change nothing, and return what a run would do.

    Rows that are handed over come with a `source` of their own.

    Raises what stops a run before it begins: source and ledger errors, TypeConflict, ColumnsFrozen.
    """
    plan = compare_and_plan(engine, state, name, source)
    if plan.error is not None:
        raise plan.error
    return plan


def _check_fence(project: Project, name: str, table: Mapping[str, str] | None) -> None:
    """Raise CatalogWithoutFence where a table, with these properties, is not kept safe from two writers."""
    pipeline = project.pipeline(name)
    if pipeline.is_keyed and (why := project.why_not_keyed(pipeline, table)) is not None:
        raise CatalogWithoutFence(name, pipeline.mode, why)


def compare_and_plan(engine: Engine, state: State, name: str, source: Reader) -> PipelinePlan:
    """Return what a run would do, or the differences that keep it from beginning, with the error."""
    project = engine.project
    pipeline = project.pipeline(name)
    contract = project.contract(name)
    table = table_of(project, pipeline)
    _check_fence(project, name, None)
    present = TableMetadata(engine, table).stored
    if present is not None:
        _check_fence(project, name, present.properties)
    entry: LedgerEntry | None = None
    doubts: tuple[str, ...] = ()
    if present is not None:
        entry, doubts = standing(engine, table, name, pipeline.source.fingerprint)
    position = recall(state, project.state_key, name, entry)
    fetched = source.fetch(source.plan(position))
    slices = fetched.slices
    sent = typed(engine, source, slices, pipeline, present) if slices else Sent(())
    seen = PipelinePlan(
        pipeline=name,
        table=table,
        mode=pipeline.mode,
        changes=(),
        slices=tuple(slices),
        columns=(),
        sent=tuple(column.name for column in sent.columns),
        entry=entry,
        notes=(
            *project.catalog_of(pipeline.catalog).warnings(),
            *pipeline.source.warnings(),
            *doubts,
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
        if has_rows(engine, source, slices):
            raise NoColumns(name, str(table))
        return replace(seen, slices=(), sent=(), notes=(NO_ROWS,))
    changes, columns = altered.changes, altered.columns
    notes = [*seen.notes, *altered.notes]
    if contract is not None:
        check_rules(engine, contract, columns, table)
        notes += unchecked(contract)
    if columns and pipeline.is_keyed:
        check_key(pipeline, columns)
        if pipeline.changes:
            changes = (*changes, *_log_changes(engine, pipeline, table, columns, present))
    return replace(
        seen,
        changes=changes,
        columns=tuple(column for column in columns if not is_own(column.name)),
        notes=tuple(notes),
        unknown=altered.unknown,
    )


def apply_changes(engine: Engine, plan: PipelinePlan) -> None:
    """Make the plan's table changes, or raise its error."""
    if plan.error is not None:
        raise plan.error
    engine.open_catalog(plan.table.catalog)
    for change in plan.changes:
        change.apply(engine)


def open_reader(engine: Engine, name: str, *, state: State | None = None, span: Span | None = None) -> Reader:
    """Return the reader of a pipeline's source, or of a span of it. Raises BackfillUnsuitable.

    Whoever loads what it reads gives it the state database, and closes it.
    """
    pipeline = engine.project.pipeline(name)
    found = reader(Opening(engine, name, pipeline, files_table_of(engine.project, pipeline), state))
    found = through_transform(engine, name, found)
    if span is None:
        return found
    again = found.by_ids(span.ids) if span.ids else found.again(span)
    if again is None:
        what = "records by their ids" if span.ids else "a part of it again"
        why = f"A source of type {pipeline.source.type} cannot be asked for {what}."
        raise BackfillUnsuitable(name, why, "Load rows again with project.load.")
    return again


def through_transform(engine: Engine, name: str, source: Reader) -> Reader:
    """Return a source, or rows in its place, as the pipeline's transform makes them, if it has one."""
    transform = engine.project.pipeline(name).transform
    return source if transform is None else TransformedReader(engine, name, transform, source)


def typed(
    engine: Engine, source: Reader, slices: list[Slice], pipeline: Pipeline, present: Table | None
) -> Sent:
    """Return the columns that the slices send, with types: declared, stored, or found in the data."""
    source.check(slices)
    sent = source.sent(slices)
    for column in sent.columns:
        if why := why_reserved(column.name):
            raise ReservedName(pipeline.table, column.name, why)
        if pipeline.mode == "scd2" and column.name.lower() in (n.lower() for n in pipeline.versions.names):
            raise ReservedName(
                pipeline.table,
                column.name,
                "mode scd2 keeps this column itself",
                "Name another one in the project file, with versions:, or rename the column in the source.",
            )
    untyped = [column.name for column in sent.columns] if sent.is_untyped else sent.untyped
    known = (*pipeline.declared_columns(), *(present.columns if present else ()))
    unknown = [name for name in untyped if find(known, name) is None]
    inferred: tuple[Column, ...] = ()
    if unknown:
        with explained("cannot look into the source", engine.log, reads_source=True):
            values = source.values(slices)
            here = None if values is None else infer_from(values, unknown)
            inferred = _by_spark(source, slices, sent, unknown) if here is None else here
    typed = (
        (find(known, column.name) or find(inferred, column.name)) if column.name in untyped else column
        for column in sent.columns
    )
    return replace(sent, columns=tuple(c for c in typed if c is not None and not _is_void(c)))


def _by_spark(source: Reader, slices: list[Slice], sent: Sent, unknown: Sequence[str]) -> tuple[Column, ...]:
    frames = (source.read(piece, sent.columns) for piece in slices)
    whole = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
    return infer_columns(whole, unknown)


def _is_void(column: Column) -> bool:
    return column.type == Plain("void")


def has_rows(engine: Engine, source: Reader, slices: list[Slice]) -> bool:
    """Tell whether there are rows in slices that have no columns."""
    with explained("cannot read the source", engine.log, reads_source=True):
        return any(source.read(piece, ()).limit(1).count() for piece in slices)


def _log_changes(
    engine: Engine, pipeline: Pipeline, table: TableId, columns: tuple[Column, ...], stored: Table | None
) -> tuple[TableChange, ...]:
    """Return what brings the change log to the table's columns, or raise SideTableForeign."""
    log = log_of(engine.project, table)
    present = find_table(engine, log)
    if present is None and stored is not None and LOG in stored.properties:
        # Another log in its place would begin in the middle and not say so.
        raise SideTableForeign(str(log))
    return log_alterations(pipeline, log, present, columns)
