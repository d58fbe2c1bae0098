"""What a declared partitioning costs, told before it is made."""

from __future__ import annotations

from pyspark.sql import functions as F

from esker.contracts.evolution import find
from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.pipeline.plan import PipelinePlan
from esker.pipeline.table_changes import CreateTable, Repartition
from esker.project.layout import PartitionField
from esker.project.modes import KEYED
from esker.project.pipelines import Pipeline
from esker.project.types import quoted
from esker.sources import Reader

_MANY = 1_000
"""More partitions than this are mostly a mistake: each holds a file of its own, and all are listed."""


def layout_notes(engine: Engine, plan: PipelinePlan, source: Reader) -> tuple[str, ...]:
    """Return what people should know of a partitioning that a plan would make. Reads the source."""
    pipeline = engine.project.pipeline(plan.pipeline)
    notes: list[str] = []
    for field in _made(plan):
        if field.transform == "bucket":
            notes.append(_bucket_note(pipeline, field))
        elif field.transform == "identity":
            notes += _identity_notes(engine, pipeline, plan, source, field)
    return tuple(notes)


def _made(plan: PipelinePlan) -> tuple[PartitionField, ...]:
    for change in plan.changes:
        match change:
            case CreateTable(table) if table.id == plan.table:
                return table.partition_fields
            case Repartition(added=added):
                return added
    return ()


def _bucket_note(pipeline: Pipeline, field: PartitionField) -> str:
    if pipeline.mode not in KEYED:
        return f"{field}: a batch writes up to {field.argument} data files"
    return (
        f"{field}: a batch writes up to {field.argument} data files and as many files of deletes, where a "
        "table without partitions, sorted by its key, gets one of each"
    )


def _identity_notes(
    engine: Engine, pipeline: Pipeline, plan: PipelinePlan, source: Reader, field: PartitionField
) -> list[str]:
    if [name.lower() for name in pipeline.key] == [field.column.lower()]:
        return [f"{field}: every key gets a partition of its own; leave it out, or write bucket(16, {field})"]
    if find(plan.columns, field.column) is None or field.column not in plan.sent:
        return []
    most = 0
    with explained("cannot look into the source", engine.log, reads_source=True):
        for piece in plan.slices:
            values = source.read(piece, plan.columns).agg(F.approx_count_distinct(quoted(field.column)))
            row = values.first()
            most = max(most, row[0] if row is not None else 0)
    if most <= _MANY:
        return []
    return [
        f"{field}: the source has about {most:,} values, and each gets a partition with files of its own; "
        "for times write day(…), for others truncate(…) or bucket(…)"
    ]
