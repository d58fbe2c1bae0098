"""Which pipelines are due: what `every` and `cron` say, against the history of runs."""

from __future__ import annotations

from datetime import datetime, timedelta

from cronsim import CronSim

from esker.ledger.runs import last_success
from esker.ledger.state import State
from esker.project import Pipeline, Project

_SLACK = timedelta(seconds=30)


def due_pipelines(project: Project, state: State, now: datetime) -> list[str]:
    """Return the pipelines that should run now.

    A pipeline is due from its time on until a run succeeds, so a failed one is tried again by the next
    call. One without a schedule is never due.
    """
    found = []
    for name, pipeline in project.pipelines.items():
        success = last_success(state, project.state_key, name)
        if is_due(pipeline, success.started_at if success else None, now):
            found.append(name)
    return found


def is_due(pipeline: Pipeline, last: datetime | None, now: datetime) -> bool:
    """Tell whether a pipeline whose last good run started at `last` should run now."""
    if pipeline.every is not None:
        # Cron starts a call some seconds early or late; a round must not be skipped for that.
        slack = min(pipeline.every / 10, _SLACK)
        return last is None or now - last >= pipeline.every - slack
    if pipeline.cron is not None:
        return last is None or next(CronSim(pipeline.cron, last)) <= now
    return False
