"""How pipelines and consumers are doing, from the history of runs. Spark is not needed for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.ledger.attempts import MissingWindows
from esker.ledger.found_tables import remembered_tables
from esker.ledger.holds import Hold, find_hold
from esker.ledger.offsets import LastDelivery, Offset, last_delivery, stored_offset
from esker.ledger.runs import RunRecord, last_success, latest_runs
from esker.ledger.state import State
from esker.pipeline.due import due_pipelines, gone_pipelines
from esker.pipeline.families import recall_all
from esker.pipeline.windows import missing_of
from esker.project import Project
from esker.project.consumers import Consumer

_LOOKED_AT = 20
"""Runs of a pipeline that are looked at: those that failed early do not say how far the table is."""


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
    missing: MissingWindows | None = None
    """Windows of its source that are no longer tried."""

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
            "missing_windows": None if self.missing is None else self.missing.as_json(),
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


@dataclass(frozen=True)
class ConsumerStatus:
    """How far one consumer is, and how its last delivery ended."""

    consumer: str
    pipeline: str
    offset: int | None
    """The last changeset that it was told; None before its first delivery."""
    lag: int | None
    """Changesets of all pipelines into its table that it has not been told; None where the history does not
    say. What other engines append is not counted."""
    last: LastDelivery | None

    @property
    def status(self) -> str:
        return str(self.last.result["status"]) if self.last else "never delivered"

    def as_json(self) -> dict[str, Any]:
        return {
            "consumer": self.consumer,
            "pipeline": self.pipeline,
            "status": self.status,
            "offset": self.offset,
            "lag": self.lag,
            "last_delivery": None
            if self.last is None
            else {"ended_at": self.last.ended_at.isoformat(), "result": self.last.result},
        }


def consumers_status(project: Project, state: State) -> list[ConsumerStatus]:
    """Return every consumer's status, from the histories of runs and deliveries."""
    found = []
    for name, consumer in project.consumers.items():
        offset = stored_offset(state, project.state_key, name)
        found.append(
            ConsumerStatus(
                consumer=name,
                pipeline=consumer.source,
                offset=None if offset is None else offset.changeset,
                lag=_lag(project, state, consumer, offset),
                last=last_delivery(state, project.state_key, name),
            )
        )
    return found


def _lag(project: Project, state: State, consumer: Consumer, offset: Offset | None) -> int | None:
    """Return how many changesets a consumer has not been told, as far as the history of runs knows."""
    own = project.pipelines.get(consumer.source)
    if own is None:
        return None
    table = project.catalog_name(own.catalog), own.table
    writers = (
        name
        for name, each in project.pipelines.items()
        if (project.catalog_name(each.catalog), each.table) == table
    )
    newest = max((_published(project, state, name) or 0 for name in writers), default=0)
    # Without a change log an offset counts snapshots, of which not all are Esker's.
    told = None if offset is None else offset.changeset if own.is_keyed else offset.published
    if newest == 0 or (offset is not None and told is None):
        return None
    return max(0, newest - (told or 0))


def _published(project: Project, state: State, pipeline: str) -> int | None:
    """Return the last changeset that a pipeline is known to have published, also by a run that failed."""
    known = latest_runs(state, project.state_key, pipeline, _LOOKED_AT)
    success = last_success(state, project.state_key, pipeline)
    for run in (*known, *([success] if success is not None else [])):
        changeset: int | None = (run.result or {}).get("changeset")
        if changeset is not None:
            return changeset
    return None


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
            missing=missing_of(project, state, name),
        )
        for name in tables
    ]
