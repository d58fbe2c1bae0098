"""Load a part of a source again, or compare all of it with the table, between normal runs.

The position stays where it is, unless a table was read as a whole: the next run goes on from there then.
What is stored wins against a row that is not newer, so a range may be loaded again at any time, as often as
one likes. Where rows are made otherwise than before, those that are as new as the stored ones can be told to
take their place.
"""

from __future__ import annotations

from esker.errors import BackfillUnsuitable
from esker.events import Listener, silent
from esker.ledger.state import State
from esker.load.guards import Approved
from esker.pipeline.result import RunResult
from esker.pipeline.run import Start, run_pipeline
from esker.project import Pipeline, Project
from esker.sources.span import Span

_RANGES = ("upsert", "insert_only", "replace_partitions")
_WHOLES = ("upsert", "insert_only", "sync", "replace", "replace_partitions")


def backfill(
    project: Project,
    start: Start,
    state: State,
    name: str,
    span: Span,
    listen: Listener = silent,
    *,
    approved: Approved | None = None,
) -> RunResult:
    """Load a span of a pipeline's source again, or raise BackfillUnsuitable.

    With a whole span, keys that the source lacks are deleted. Errors are in the result, as of a run.
    """
    pipeline = project.pipeline(name)
    _check(name, pipeline, span)
    return run_pipeline(project, start, state, name, listen, span=span, approved=approved)


def _check(name: str, pipeline: Pipeline, span: Span) -> None:
    if span.since is not None and span.until is not None and span.since >= span.until:
        raise BackfillUnsuitable(
            name, "The range ends before it begins.", "--to is the first moment after it."
        )
    if span.is_full and pipeline.evolution == "discard_row":
        why = "Rows that evolution: discard_row leaves out would be taken for deleted ones."
        raise BackfillUnsuitable(name, why, "Write another policy: evolve, freeze or discard_column.")
    if span.ids and pipeline.mode == "replace_partitions":
        why = "A partition that gets one of these records would be swapped for it alone."
        raise BackfillUnsuitable(name, why, "Name a range: --from and --to.")
    if span.replaces_equal and (pipeline.mode != "upsert" or pipeline.order_by is None):
        why = "Only order_by: in mode upsert tells which rows are as new as the stored ones."
        raise BackfillUnsuitable(name, why, "Leave out --replace-equal, or compare all of it: --full")
    if pipeline.mode in (_WHOLES if span.is_full else _RANGES):
        return
    if pipeline.mode in _WHOLES:
        why = f"Mode {pipeline.mode} takes all that the source holds; a part of it would look like the whole."
        raise BackfillUnsuitable(name, why, f"Compare all of it: esker backfill {name} --full")
    why = f"In mode {pipeline.mode} rows that are loaded again would be there twice, or replace newer ones."
    raise BackfillUnsuitable(name, why, "Load by key (mode: upsert) to be able to load rows again.")
