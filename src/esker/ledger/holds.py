"""Holds: batches that tripped a guard and wait for a person.

A hold names the slice that was held and the figures that are too high or too low. The table was not
touched and the position did not move, so a lost state database loses only the question: the next run
asks it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from esker.errors import Tripped
from esker.ledger.entry import LedgerEntry, Position
from esker.ledger.state import State, holds, moment_of, text_of


@dataclass(frozen=True)
class Hold:
    """A batch that waits for `esker approve` or `esker reject`."""

    pipeline: str
    run_id: str
    start: str
    """Digest of the position that the batch was planned from."""
    position: Position | None
    """Where the pipeline stands when the batch is past."""
    tripped: tuple[Tripped, ...]
    """Which guards it tripped: these figures are approved, and none that are worse."""
    message: str
    held_at: datetime
    span: Mapping[str, Any] | None = None
    """What of the source was to be loaded again; None for a batch of a normal run."""

    def as_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "message": self.message,
            "tripped": [each.as_json() for each in self.tripped],
            "held_at": self.held_at.isoformat(),
            "backfill": self.span,
        }

    def is_of(self, entry: LedgerEntry | None) -> bool:
        """Tell whether the pipeline still stands where it stood when the batch was held."""
        return self.start == _start(entry)


def hold(
    state: State,
    project: str,
    pipeline: str,
    *,
    run_id: str,
    entry: LedgerEntry | None,
    position: Position | None,
    tripped: Sequence[Tripped],
    message: str,
    span: Mapping[str, Any] | None = None,
) -> None:
    """Write down that a batch is held; an earlier one of the pipeline is forgotten."""
    with state.begin() as connection:
        connection.execute(holds.delete().where(_key(project, pipeline)))
        connection.execute(
            holds.insert().values(
                project=project,
                pipeline=pipeline,
                run_id=run_id,
                entry=_start(entry),
                position=json.dumps(position),
                tripped=json.dumps([each.as_json() for each in tripped]),
                message=message,
                span=json.dumps(span),
                held_at=text_of(state.now()),
            )
        )


def find_hold(state: State, project: str, pipeline: str) -> Hold | None:
    """Return what a pipeline waits for, if it waits."""
    with state.begin() as connection:
        found = connection.execute(sa.select(holds).where(_key(project, pipeline))).first()
    if found is None:
        return None
    return Hold(
        pipeline=pipeline,
        run_id=found.run_id,
        start=found.entry,
        position=json.loads(found.position),
        tripped=tuple(Tripped(**each) for each in json.loads(found.tripped)),
        message=found.message,
        held_at=moment_of(found.held_at),
        span=json.loads(found.span),
    )


def release(state: State, project: str, pipeline: str, *, backfill: bool) -> None:
    """Forget the batch, or the backfill, that a pipeline waited for."""
    of_run = holds.c.span == json.dumps(None)
    with state.begin() as connection:
        connection.execute(
            holds.delete().where(_key(project, pipeline) & (sa.not_(of_run) if backfill else of_run))
        )


def _start(entry: LedgerEntry | None) -> str:
    text = json.dumps(entry.position if entry else None, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _key(project: str, pipeline: str) -> sa.ColumnElement[bool]:
    return (holds.c.project == project) & (holds.c.pipeline == pipeline)
