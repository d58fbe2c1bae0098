"""Load what is new, and start Spark only for a pipeline that has something to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from esker.errors import EskerError
from esker.events import Listener, Reached, Step, silent
from esker.ledger.state import State
from esker.pipeline.idle import nothing_new
from esker.pipeline.named import named
from esker.pipeline.planned import PipelinePlan, described
from esker.pipeline.recorded import Start, Work, recorded
from esker.pipeline.result import RunReport, RunResult
from esker.project import Project

if TYPE_CHECKING:
    from esker.engine.session import Engine
    from esker.pipeline.run import SparkRun

IsStarted = Callable[[], bool]
"""Tells whether Spark runs already."""


def run_pipelines(
    project: Project,
    start: Start,
    state: State,
    names: Sequence[str],
    listen: Listener = silent,
    is_started: IsStarted = lambda: False,
) -> RunReport:
    """Run pipelines one after the other. One that fails does not keep the others from running."""
    once = _once(start)
    return RunReport([run_new(project, once, state, name, listen, is_started) for name in names])


def run_new(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener = silent,
    is_started: IsStarted = lambda: False,
) -> RunResult:
    """Load what is new in one pipeline's source. Errors are in the result; only an interruption is raised.

    Without anything to do it ends without Spark. Where Spark runs already, there is nothing to spare.
    """

    def begin(result: RunResult) -> Work:
        return _LookFirst(project, start, state, listen, result, is_started)

    return recorded(project, state, name, listen, begin)


@dataclass
class _LookFirst:
    """A run that looks, without Spark, whether there is anything to do, before it does that with Spark."""

    project: Project
    start: Start
    state: State
    listen: Listener
    result: RunResult
    is_started: IsStarted
    _run: SparkRun | None = None

    def load(self) -> None:
        name = self.result.pipeline
        plan = None if self.is_started() else nothing_new(self.project, self.state, name)
        if plan is not None:
            self.listen(Reached(name, Step.PLANNED, described(plan)))
            self.result = _unchanged(self.result, plan)
            return
        from esker.pipeline.run import SparkRun  # noqa: PLC0415 (PySpark)

        self._run = SparkRun(self.start, self.state, self.listen, self.result)
        try:
            self._run.load()
        finally:
            self.result = self._run.result

    def cancel(self) -> None:
        if self._run is not None:
            self._run.cancel()


def _unchanged(result: RunResult, plan: PipelinePlan) -> RunResult:
    """Return the result of a run that had nothing to do."""
    entry = plan.entry
    position = entry.position if entry is not None else None
    return replace(
        result,
        position={"from": position, "to": position},
        snapshot_id=entry.snapshot if entry is not None else None,
        changeset=entry.changeset if entry is not None else None,
        notes=plan.notes,
    )


def _once(start: Start) -> Start:
    """Return a start that fails once: who waited a minute for a cluster does not wait for each pipeline."""
    failure: EskerError | None = None

    def started() -> Engine:
        nonlocal failure
        if failure is not None:
            raise failure
        try:
            return start()
        except EskerError as error:
            failure = named(error, "")  # no pipeline's own: all get it
            raise

    return started
