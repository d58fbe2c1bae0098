"""Decide about a batch that is held: let it happen, or go on without it."""

from __future__ import annotations

from esker.engine.iceberg.commit import Attempt
from esker.errors import NoHold, PipelineBusy
from esker.events import Listener, silent
from esker.ledger.holds import Hold, find_hold, release
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.run_id import new_run_id
from esker.ledger.state import State
from esker.load.audits import drop_staged
from esker.load.modes.skip import Skip
from esker.load.publish import Publisher
from esker.load.standing import standing
from esker.pipeline.result import RunResult
from esker.pipeline.run import Start, check_hold, run_pipeline
from esker.pipeline.tables import table_of
from esker.project import Project
from esker.sources import Span


def approve(project: Project, start: Start, state: State, name: str, listen: Listener = silent) -> RunResult:
    """Run a pipeline whose batch is held, with the figures allowed that were shown, or raise NoHold.

    The batch is read and compared with the table of today. If it would be worse by now, it is held again.
    """
    waiting = _waiting(project, state, name)
    span = Span.from_json(waiting.span) if waiting.span is not None else None
    result = run_pipeline(project, start, state, name, listen, span=span, decided=waiting)
    if isinstance(result.error, NoHold):
        raise result.error
    return result


def reject(project: Project, start: Start, state: State, name: str) -> Hold:
    """Move a pipeline's position past the batch that is held; its rows are not loaded. Or raise NoHold.

    A backfill that is held is forgotten: it moves no position.
    """
    waiting = _waiting(project, state, name)
    table = table_of(project, project.pipeline(name))
    if waiting.span is not None:
        release(state, project.state_key, name, backfill=True)
        engine = start()
        engine.open_catalog(table.catalog)
        drop_staged(engine, table, name)
        return waiting
    try:
        with held(state, f"{project.state_key}/{name}"):
            engine = start()
            engine.open_catalog(table.catalog)
            source = engine.project.pipeline(name).source.fingerprint
            entry, _ = standing(Attempt(engine, table), table, name, source, project.project)
            check_hold(state, project, waiting, entry)
            attempt = Attempt(engine, table)
            publisher = Publisher(engine, table, name, source, new_run_id())
            skip = Skip((attempt.uuid, attempt.schema_id))
            publisher.publish(skip, entry, waiting.position, before_swap=lambda: None)
            release(state, project.state_key, name, backfill=False)
    except LeaseTaken as taken:
        raise PipelineBusy(name, taken.holder) from None
    return waiting


def _waiting(project: Project, state: State, name: str) -> Hold:
    project.pipeline(name)
    waiting = find_hold(state, project.state_key, name)
    if waiting is None:
        raise NoHold(name, "None of its batches is held.")
    return waiting
