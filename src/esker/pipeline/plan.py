"""Decide what a run will do, as a value. `esker plan` prints it, `esker run` executes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from esker.contracts.evolution import find
from esker.contracts.inference import infer_columns
from esker.contracts.inference_here import infer_from
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import Table, find_table
from esker.engine.session import Engine
from esker.errors import BackfillUnsuitable, ReservedName
from esker.ledger.entry import LedgerEntry
from esker.ledger.remembered import recall
from esker.ledger.state import State
from esker.load.standing import standing
from esker.pipeline.planned import NO_ROWS, NOTHING_NEW, Observed, PipelinePlan, check_fence, planned
from esker.pipeline.rules import check_rules, unchecked
from esker.pipeline.tables import files_table_of, table_of
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.project import Pipeline
from esker.project.reserved import why_reserved
from esker.project.types import Column, Plain
from esker.sources import Opening, Reader, Sent, Slice, Span, reader
from esker.sources.transformed import TransformedReader

__all__ = [
    "NOTHING_NEW",
    "NO_ROWS",
    "PipelinePlan",
    "apply_changes",
    "compare_and_plan",
    "has_rows",
    "open_reader",
    "plan_pipeline",
    "through_transform",
    "typed",
]


def plan_pipeline(engine: Engine, state: State, name: str, source: Reader) -> PipelinePlan:
    """Look at source, ledger and table, change nothing, and return what a run would do.

    Rows that are handed over come with a `source` of their own.

    Raises what stops a run before it begins: source and ledger errors, TypeConflict, ColumnsFrozen.
    """
    plan = compare_and_plan(engine, state, name, source)
    if plan.error is not None:
        raise plan.error
    return plan


def compare_and_plan(engine: Engine, state: State, name: str, source: Reader) -> PipelinePlan:
    """Return what a run would do, or the differences that keep it from beginning, with the error."""
    project = engine.project
    pipeline = project.pipeline(name)
    table = table_of(project, pipeline)
    check_fence(project, name, None)
    present = TablesBySpark(engine).find(table)
    if present is not None:
        check_fence(project, name, present.properties)
    entry: LedgerEntry | None = None
    doubts: tuple[str, ...] = ()
    if present is not None:
        attempt = Attempt(engine, table)
        entry, doubts = standing(attempt, table, name, pipeline.source.fingerprint, project.project)
    position = recall(state, project.state_key, name, entry)
    fetched = source.fetch(source.plan(position))
    slices = fetched.slices
    sent = typed(engine, source, slices, pipeline, present) if slices else Sent(())
    return planned(
        project,
        name,
        Observed(present, entry, doubts, fetched, sent),
        find=lambda table: find_table(engine, table),
        has_rows=lambda: has_rows(engine, source, slices),
        check=lambda contract, columns: check_rules(engine, contract, columns, table),
        unchecked=unchecked,
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
