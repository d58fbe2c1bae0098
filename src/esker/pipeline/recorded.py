"""What every run has, whatever does its work: a lease, a place in the history, a result with its error."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from esker.errors import EskerError, Fenced, Held, Interrupted, StateError, Unexpected
from esker.events import Listener, Reached, Step
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.run_id import new_run_id
from esker.ledger.runs import record_end, record_start
from esker.ledger.state import State
from esker.pipeline.named import named
from esker.pipeline.result import RunResult, Status
from esker.pipeline.tables import table_of
from esker.pipeline.windows import missing_of
from esker.project import Project
from esker.project.secrets import redact

if TYPE_CHECKING:
    from esker.engine.session import Engine

Start = Callable[[], "Engine"]
"""Starts Spark, or returns the one that runs. Called once a run holds its lease, not before."""


class Work(Protocol):
    """What a run does."""

    result: RunResult
    """What has been done so far, at any moment."""

    def load(self) -> None:
        """Load what is new. Raises the error with which the run ends."""

    def cancel(self) -> None:
        """Stop what goes on elsewhere, after an interruption."""


def recorded(
    project: Project, state: State, name: str, listen: Listener, begin: Callable[[RunResult], Work]
) -> RunResult:
    """Run a pipeline once it has its lease, and write down how that went.

    Errors are in the result; only an interruption is raised.
    """
    run_id = new_run_id()
    result = RunResult(name, run_id, "succeeded", str(table_of(project, project.pipeline(name))))
    try:
        with held(state, f"{project.state_key}/{name}"):
            return _recorded(project, state, listen, begin(result), result)
    except LeaseTaken as taken:
        return replace(result, status="skipped", notes=(f"another run is active: {taken.holder}",))
    except EskerError as error:
        return replace(result, status="failed", error=named(error, name))
    except Exception as error:
        return replace(result, status="failed", error=Unexpected.reported(error, redact))


def _recorded(project: Project, state: State, listen: Listener, run: Work, result: RunResult) -> RunResult:
    record_start(state, project.state_key, result.pipeline, result.run_id)
    started = time.monotonic()
    try:
        run.load()
    except KeyboardInterrupt:
        run.cancel()
        interrupted = Interrupted()
        with suppress(StateError):  # people hear of the interruption, whatever the history says
            record_end(state, result.run_id, "failed", run.result.as_json(), interrupted.as_json())
        raise interrupted from None
    except EskerError as error:
        status: Status = (
            "fenced" if isinstance(error, Fenced) else "held" if isinstance(error, Held) else "failed"
        )
        run.result = replace(run.result, status=status, error=named(error, result.pipeline))
    except Exception as error:
        # A mistake in Esker must not keep the other pipelines from running, nor leave a run open.
        run.result = replace(run.result, status="failed", error=Unexpected.reported(error, redact))
    result = _with_missing(project, state, replace(run.result, seconds=time.monotonic() - started))
    error_json = result.error.as_json() if result.error else None
    try:
        record_end(state, result.run_id, result.status, result.as_json(), error_json)
    except StateError as error:
        result = replace(result, notes=(*result.notes, f"not in the history: {error.reason}"))
    listen(Reached(result.pipeline, Step.FINISHED, result.status))
    return result


def _with_missing(project: Project, state: State, result: RunResult) -> RunResult:
    """Return a result that says which windows of the source are no longer tried."""
    try:
        missing = missing_of(project, state, result.pipeline)
    except StateError:
        return result  # that the history cannot be written is told anyway
    if missing is None:
        return result
    notes = (*result.notes, missing.told(result.pipeline))
    return replace(result, missing_windows=missing, notes=notes)
