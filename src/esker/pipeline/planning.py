"""What runs would do, and how contract, table and source differ, found out with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from esker.engine.iceberg.table_id import TableId
from esker.errors import EskerError
from esker.ledger.state import State
from esker.pipeline.discovery import discover
from esker.pipeline.layout_notes import layout_notes
from esker.pipeline.named import naming
from esker.pipeline.plan import PipelinePlan, compare_and_plan, open_reader
from esker.pipeline.reader_notes import reader_notes
from esker.pipeline.recorded import Start
from esker.pipeline.rules import awaited
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.project import Pipeline, Project


def plan_all(project: Project, start: Start, state: State, names: Sequence[str]) -> list[PipelinePlan]:
    """Return plans of pipelines, and of the tables of families. Nothing is changed.

    What keeps a run from beginning is the plan's error; the others are planned all the same.
    """
    start()  # what goes wrong here is no pipeline's
    return [plan for name in names for plan in _plans(project, start, state, name)]


def _plans(project: Project, start: Start, state: State, name: str) -> list[PipelinePlan]:
    family = project.family_of(name)
    if family is None:
        return [_planned(project, start, state, name)]
    try:
        found = discover(project, start, state, family).of(name)
    except EskerError as error:
        return [_unplanned(project, name, family.base, error)]
    unsuited = (
        _unplanned(project, each.pipeline, family.base, each.error, each.target) for each in found.unsuited
    )
    return [*(_planned(project, start, state, each) for each in found.names), *unsuited]


def _planned(project: Project, start: Start, state: State, name: str) -> PipelinePlan:
    engine = start()
    try:
        with naming(name), closing(open_reader(engine, name)) as source:
            plan = compare_and_plan(engine, state, name, source)
            told = (
                *layout_notes(engine, plan, source),
                *reader_notes(engine.project, plan, TablesBySpark(engine).find),
                *awaited(engine, name, plan.table),
            )
            return replace(plan, notes=(*plan.notes, *told))
    except EskerError as error:
        return _unplanned(project, name, project.pipeline(name), error)


def _unplanned(
    project: Project, name: str, pipeline: Pipeline, error: EskerError, table: str | None = None
) -> PipelinePlan:
    place = TableId(project.catalog_name(pipeline.catalog), table or pipeline.table)
    return PipelinePlan(name, place, pipeline.mode, (), (), (), (), None, error=error)
