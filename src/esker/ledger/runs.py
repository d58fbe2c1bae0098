"""The history of runs, kept in the state database.

A run is kept for 90 days; the newest 1,000 of each pipeline, and its last success, also longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from esker.errors import ProcessDied
from esker.ledger.process import is_gone, is_of_another_boot, this_process
from esker.ledger.state import State, moment_of, runs, text_of
from esker.project.secrets import masked

_KEPT_FOR = timedelta(days=90)
_KEPT_RUNS = 1_000
_SIZES = 30


@dataclass(frozen=True)
class RunRecord:
    """One run as the history knows it."""

    run_id: str
    pipeline: str
    status: str
    started_at: datetime
    finished_at: datetime | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None


def record_start(state: State, project: str, pipeline: str, run_id: str) -> None:
    """Write down that a run begins, and that earlier ones whose process is gone have failed.

    Whoever begins a run holds its lease. So one that began before is over, too, when its process cannot be
    looked for because the machine was started anew, or because an earlier version wrote it down. If that was
    another machine of this name, it still says itself how it ends.

    Runs that need not be kept any longer are removed.
    """
    moment = state.now()
    now = text_of(moment)
    with state.begin() as connection:
        open_runs = connection.execute(
            sa.select(runs.c.run_id, runs.c.process).where(
                runs.c.project == project, runs.c.pipeline == pipeline, runs.c.status == "running"
            )
        ).all()
        for former in open_runs:
            if is_gone(former.process) or is_of_another_boot(former.process):
                died = ProcessDied().as_json()
                connection.execute(
                    runs.update()
                    .where(runs.c.run_id == former.run_id)
                    .values(status="failed", finished_at=now, error=json.dumps(died))
                )
        connection.execute(
            runs.insert().values(
                run_id=run_id,
                project=project,
                pipeline=pipeline,
                status="running",
                started_at=now,
                process=this_process(),
            )
        )
        _prune(connection, project, pipeline, moment)


def _prune(connection: sa.Connection, project: str, pipeline: str, now: datetime) -> None:
    own = (runs.c.project == project) & (runs.c.pipeline == pipeline)
    newest = sa.select(runs.c.started_at).where(own).order_by(runs.c.started_at.desc())
    # The oldest of those that are kept by number; none while there are fewer.
    limit = connection.execute(newest.offset(_KEPT_RUNS - 1).limit(1)).scalar()
    if limit is None:
        return
    success = connection.execute(newest.where(runs.c.status == "succeeded").limit(1)).scalar()
    before = min(limit, text_of(now - _KEPT_FOR))
    old = own & (runs.c.started_at < before) & (runs.c.status != "running")
    if success is not None:
        old &= runs.c.started_at != success
    connection.execute(runs.delete().where(old))


def record_end(
    state: State, run_id: str, status: str, result: Mapping[str, Any], error: Mapping[str, Any] | None
) -> None:
    """Write down how a run ended."""
    finished = text_of(state.now())
    with state.begin() as connection:
        connection.execute(
            runs.update()
            .where(runs.c.run_id == run_id)
            .values(
                status=status,
                finished_at=finished,
                result=json.dumps(masked(result)),
                error=json.dumps(masked(error)) if error else None,
            )
        )


def latest_runs(state: State, project: str, pipeline: str, limit: int = 1) -> list[RunRecord]:
    """Return a pipeline's newest runs, newest first."""
    query = (
        sa.select(runs)
        .where(runs.c.project == project, runs.c.pipeline == pipeline)
        .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
        .limit(limit)
    )
    with state.begin() as connection:
        return [_record(row) for row in connection.execute(query)]


def batch_sizes(state: State, project: str, pipeline: str, *, whole: bool) -> list[int]:
    """Return how many rows the last batches had that came from the source: a piece, or `whole`."""
    query = (
        sa.select(runs.c.result)
        .where(runs.c.project == project, runs.c.pipeline == pipeline, runs.c.status == "succeeded")
        .order_by(runs.c.started_at.desc())
        .limit(_SIZES)
    )
    with state.begin() as connection:
        results = [json.loads(text) for text in connection.execute(query).scalars() if text]
    found = [(result["rows"]["read"], result.get("pieces", 0)) for result in results]
    return [rows if whole else rows // pieces for rows, pieces in found if pieces]


def last_success(state: State, project: str, pipeline: str) -> RunRecord | None:
    """Return the newest run that did its work."""
    query = (
        sa.select(runs)
        .where(runs.c.project == project, runs.c.pipeline == pipeline, runs.c.status == "succeeded")
        .order_by(runs.c.started_at.desc())
        .limit(1)
    )
    with state.begin() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else _record(row)


def _record(row: sa.Row[Any]) -> RunRecord:
    error = json.loads(row.error) if row.error else None
    status = row.status
    if status == "running" and is_gone(row.process):
        status, error = "failed", ProcessDied().as_json()
    return RunRecord(
        run_id=row.run_id,
        pipeline=row.pipeline,
        status=status,
        started_at=moment_of(row.started_at),
        finished_at=moment_of(row.finished_at) if row.finished_at else None,
        result=json.loads(row.result) if row.result else None,
        error=error,
    )
