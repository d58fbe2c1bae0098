"""Which pipelines are due: what `every` and `cron` say, against the history of runs."""

from __future__ import annotations

from datetime import datetime, timedelta

from cronsim import CronSim

from esker.ledger.found_tables import gone_tables
from esker.ledger.runs import last_success
from esker.ledger.state import State
from esker.project import Pipeline, Project

_SLACK = timedelta(seconds=30)


def due_pipelines(project: Project, state: State, now: datetime) -> list[str]:
    """Return the pipelines that should run now.

    A pipeline is due from its time on until a run succeeds, so a failed one is tried again by the next
    call. One without a schedule is never due. Families are due with any of their pipelines, and when their
    database should be asked for further ones.
    """
    gone = gone_pipelines(project, state)
    found = []
    for name, pipeline in project.pipelines.items():
        if name not in gone and is_due(pipeline, _last(project, state, name), now):
            found.append(name)
    for family in project.families.values():
        last = _last(project, state, family.name)
        has_due = any(name.startswith(f"{family.name}.") for name in found)
        if has_due or any(is_due(pipeline, last, now) for pipeline in family.stand_ins):
            found.append(family.name)
    return found


def gone_pipelines(project: Project, state: State) -> set[str]:
    """Return the pipelines of families whose tables were gone when the database was asked last."""
    return {
        family.name_of(table)
        for family in project.families.values()
        for table in gone_tables(state, project.state_key, family.name)
    }


def _last(project: Project, state: State, name: str) -> datetime | None:
    success = last_success(state, project.state_key, name)
    return success.started_at if success else None


def is_due(pipeline: Pipeline, last: datetime | None, now: datetime) -> bool:
    """Tell whether a pipeline whose last good run started at `last` should run now."""
    if pipeline.every is not None:
        # Cron starts a call some seconds early or late; a round must not be skipped for that.
        slack = min(pipeline.every / 10, _SLACK)
        return last is None or now - last >= pipeline.every - slack
    if pipeline.cron is not None:
        return last is None or next(CronSim(pipeline.cron, last)) <= now
    return False
