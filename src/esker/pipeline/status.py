"""How the pipelines are doing, from the history of runs. Spark is not needed for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.ledger.holds import Hold, find_hold
from esker.ledger.runs import RunRecord, last_success, latest_runs
from esker.ledger.state import State
from esker.pipeline.due import is_due
from esker.project import Project


@dataclass(frozen=True)
class PipelineStatus:
    """One pipeline's last run, its last good one, and whether it is due."""

    pipeline: str
    table: str
    last_run: RunRecord | None
    last_success: RunRecord | None
    is_due: bool
    hold: Hold | None = None
    """What waits for a person."""

    @property
    def status(self) -> str:
        return self.last_run.status if self.last_run else "never ran"

    def as_json(self) -> dict[str, Any]:
        last, good = self.last_run, self.last_success
        return {
            "pipeline": self.pipeline,
            "table": self.table,
            "status": self.status,
            "due": self.is_due,
            "hold": None if self.hold is None else self.hold.as_json(),
            "last_run": None
            if last is None
            else {
                "run_id": last.run_id,
                "status": last.status,
                "started_at": last.started_at.isoformat(),
                "finished_at": last.finished_at.isoformat() if last.finished_at else None,
                "error": last.error,
            },
            "last_success": None
            if good is None
            else {
                "run_id": good.run_id,
                "started_at": good.started_at.isoformat(),
                "result": good.result,
            },
        }


def project_status(project: Project, state: State, now: datetime) -> list[PipelineStatus]:
    """Return every pipeline's status."""
    found = []
    for name, pipeline in project.pipelines.items():
        last = next(iter(latest_runs(state, project.state_key, name)), None)
        good = last_success(state, project.state_key, name)
        found.append(
            PipelineStatus(
                pipeline=name,
                table=pipeline.table,
                last_run=last,
                last_success=good,
                is_due=is_due(pipeline, good.started_at if good else None, now),
                hold=find_hold(state, project.state_key, name),
            )
        )
    return found
