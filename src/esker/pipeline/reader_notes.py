"""How a table is written for those who are to read it, and what of it they cannot read, told by a plan."""

from __future__ import annotations

from collections.abc import Iterator

from esker.engine.iceberg.table_metadata import Table
from esker.pipeline.planned import Find, PipelinePlan
from esker.project import Project
from esker.project.pipelines import Pipeline
from esker.project.readers import CODEC, READERS, contradictions, unreadable_columns


def reader_notes(project: Project, plan: PipelinePlan, find: Find) -> tuple[str, ...]:
    """Return what people should know of a plan whose pipeline names its readers."""
    pipeline = project.pipeline(plan.pipeline)
    if not pipeline.readers:
        return ()
    present = find(plan.table)
    notes = [_written(pipeline)] if present is None else list(_stored(pipeline, present))
    declared = {name.lower() for name in pipeline.columns}
    found = (column for column in plan.columns if column.name.lower() not in declared)
    notes += [str(what) for _, what in unreadable_columns(pipeline.readers, found)]
    return tuple(notes)


def _written(pipeline: Pipeline) -> str:
    encoding = pipeline.encoding()
    names = ", ".join(READERS[name].title for name in pipeline.readers)
    return "; ".join((f"written for {names}: {encoding}", *encoding.reasons))


def _stored(pipeline: Pipeline, present: Table) -> Iterator[str]:
    """Yield how a table that is there is not what its readers need: files stay as they were written."""
    kind = present.properties.get("write.format.default", "parquet")
    codec = present.properties.get(CODEC) if kind == "parquet" else None
    for what in contradictions(
        pipeline.readers, format_version=present.format_version, format=kind, codec=codec
    ):
        yield f"the table is there already, and {what.why}"
