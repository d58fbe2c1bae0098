"""How the pipelines are doing, from the history of runs. Spark is not needed for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.ledger.found_tables import remembered_tables
from esker.ledger.holds import Hold, find_hold
from esker.ledger.runs import RunRecord, last_success, latest_runs
from esker.ledger.state import State
from esker.pipeline.due import due_pipelines, gone_pipelines
from esker.pipeline.families import recall_all
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
    is_gone: bool = False
    """Its table was no longer in the database when that was asked last."""

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
            "gone": self.is_gone,
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
    """Return every pipeline's status. Of a family: how asking for its tables went, and those found before."""
    recall_all(project, state)
    due, gone = due_pipelines(project, state, now), gone_pipelines(project, state)
    tables = {name: pipeline.table for name, pipeline in project.pipelines.items() if "." not in name}
    for name, family in project.families.items():
        found = remembered_tables(state, project.state_key, name)
        # Also those that cannot be loaded.
        tables[name] = family.template
        tables |= {family.name_of(table): family.target_of(table) for table in found}
    return [
        PipelineStatus(
            pipeline=name,
            table=tables[name],
            last_run=next(iter(latest_runs(state, project.state_key, name)), None),
            last_success=last_success(state, project.state_key, name),
            is_due=name in due,
            hold=find_hold(state, project.state_key, name),
            is_gone=name in gone,
        )
        for name in tables
    ]
