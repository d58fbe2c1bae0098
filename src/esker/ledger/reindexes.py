"""A full reindex under way: what it pinned, and which of its tasks are done, in the state database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from esker.errors import ConsumerFenced
from esker.ledger.leases import Lease
from esker.ledger.offsets import Offset, drop_offset, offset_in, put_offset
from esker.ledger.state import State, reindex_tasks, reindexes, text_of

if TYPE_CHECKING:
    from esker.engine.iceberg.metadata import SnapshotId

REINDEX_TAG = "esker-reindex-"
"""How tags begin that keep the snapshot of a reindex, and on the log what is told behind it."""


@dataclass(frozen=True)
class ReindexPlan:
    """A reindex that has begun."""

    id: str
    snapshot: SnapshotId
    """What is read, by whoever does a task of it."""
    offset: Offset
    """Where deliveries go on when it is done."""
    into: str | None
    """The index that is filled; None for a target that is no index."""
    rows_per_task: int
    """How the snapshot's files are divided: the same in every process."""
    event: int
    """The number of dead letters that come of it."""
    is_verified: bool = False
    """The new index holds what the snapshot holds, and from then on the consumer's offset says how far it is:
    deliveries go there, and nowhere else."""
    replaced: Offset | None = None
    """How far the index was told that the new one is to replace, from when the offset is the new one's."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ReindexPlan:
        replaced = document.get("replaced")
        offsets = {
            "offset": Offset.from_json(document["offset"]),
            "replaced": None if replaced is None else Offset.from_json(replaced),
        }
        return cls(**{**document, **offsets})


def reindex_tag(project: str, consumer: str) -> str:
    """Return the tag that keeps the snapshot of a consumer's reindex."""
    return f"{REINDEX_TAG}{project.replace('@', '-')}-{consumer}"


def find_plan(state: State, project: str, consumer: str) -> ReindexPlan | None:
    """Return the reindex of a consumer that has begun and is not done."""
    with state.begin() as connection:
        return _plan_in(connection, project, consumer)


def _plan_in(
    connection: sa.Connection, project: str, consumer: str, *, is_changed: bool = False
) -> ReindexPlan | None:
    query = sa.select(reindexes.c.plan).where(
        reindexes.c.project == project, reindexes.c.consumer == consumer
    )
    text = connection.execute(query.with_for_update() if is_changed else query).scalar()
    return None if text is None else ReindexPlan.from_json(json.loads(text))


def keep_plan(state: State, project: str, consumer: str, lease: Lease, plan: ReindexPlan) -> None:
    """Write down that a reindex begins, in the place of one that is not done. Raises ConsumerFenced."""
    now = state.now()
    with state.begin() as connection:
        earlier = _plan_in(connection, project, consumer, is_changed=True)
        if earlier is not None:
            _take_back(connection, project, consumer, lease, earlier, now)
        _forget(connection, project, consumer)
        connection.execute(
            reindexes.insert().values(
                project=project, consumer=consumer, plan=json.dumps(plan.as_json()), begun_at=text_of(now)
            )
        )


def _take_back(
    connection: sa.Connection, project: str, consumer: str, lease: Lease, plan: ReindexPlan, moment: datetime
) -> None:
    """Let the offset be right without a reindex that ends before it is done.

    An index that was to be replaced is as far as it was before. Any other target has rows of the snapshot,
    perhaps behind later changes, which are told once more.
    """
    now = offset_in(connection, project, consumer)
    if plan.into is not None and plan.is_verified:
        offset = plan.replaced
    elif plan.into is None and not plan.is_verified and _is_ahead(now, plan.offset):
        offset = plan.offset
    else:
        return
    if offset is None:
        if not lease.is_held(connection):
            raise ConsumerFenced(consumer)
        drop_offset(connection, project, consumer)
    else:
        put_offset(connection, project, consumer, lease, now, offset, moment)


def _is_ahead(one: Offset | None, other: Offset) -> bool:
    return one is not None and one.table == other.table and one.changeset > other.changeset


def mark_verified(
    state: State,
    project: str,
    consumer: str,
    lease: Lease,
    before: Offset | None,
    plan: ReindexPlan,
    offset: Offset,
) -> ReindexPlan:
    """Write down that all rows have arrived, and an index was right, and let the offset be that of what has
    them. Returns the plan as it is then.

    In one transaction: whoever finds the plan knows of which index the offset is. Raises ConsumerFenced.
    """
    verified = replace(plan, is_verified=True, replaced=before)
    text = json.dumps(verified.as_json())
    key = (reindexes.c.project == project) & (reindexes.c.consumer == consumer)
    same = reindexes.c.plan == json.dumps(plan.as_json())  # not another one that was begun since
    now = state.now()
    with state.begin() as connection:
        put_offset(connection, project, consumer, lease, before, offset, now)
        if connection.execute(reindexes.update().where(key & same).values(plan=text)).rowcount == 0:
            raise ConsumerFenced(consumer)
    return verified


def forget_plan(state: State, project: str, consumer: str, lease: Lease, plan: str, *, is_done: bool) -> None:
    """Forget a reindex that is done, or given up; not another one that was begun since.

    Raises ConsumerFenced.
    """
    now = state.now()
    with state.begin() as connection:
        found = _plan_in(connection, project, consumer, is_changed=True)
        if found is None or found.id != plan:
            return
        if not is_done:
            _take_back(connection, project, consumer, lease, found, now)
        _forget(connection, project, consumer)


def forget_reindex(state: State, project: str, consumer: str) -> None:
    """Forget whatever reindex of a consumer has begun."""
    with state.begin() as connection:
        _forget(connection, project, consumer)


def _forget(connection: sa.Connection, project: str, consumer: str) -> None:
    for table in (reindexes, reindex_tasks):
        connection.execute(table.delete().where(table.c.project == project, table.c.consumer == consumer))


class _DoneTwice(Exception):
    """Two have done the same task, and the other one was faster to write it down."""


def record_task(
    state: State, project: str, consumer: str, plan: str, number: int, counts: Mapping[str, int]
) -> None:
    """Write down that a task of a reindex is done; somebody else may do the same at the same moment."""
    key = (
        (reindex_tasks.c.project == project)
        & (reindex_tasks.c.consumer == consumer)
        & (reindex_tasks.c.plan_id == plan)
        & (reindex_tasks.c.number == number)
    )
    done = reindex_tasks.insert().values(
        project=project,
        consumer=consumer,
        plan_id=plan,
        number=number,
        counts=json.dumps(counts),
        done_at=text_of(state.now()),
    )
    with suppress(_DoneTwice), state.begin() as connection:
        connection.execute(reindex_tasks.delete().where(key))
        try:
            connection.execute(done)
        except IntegrityError:
            raise _DoneTwice from None


def done_tasks(state: State, project: str, consumer: str, plan: str) -> dict[int, dict[str, int]]:
    """Return the counts of each task of a reindex that is done, by its number."""
    query = sa.select(reindex_tasks.c.number, reindex_tasks.c.counts).where(
        reindex_tasks.c.project == project,
        reindex_tasks.c.consumer == consumer,
        reindex_tasks.c.plan_id == plan,
    )
    with state.begin() as connection:
        return {row.number: json.loads(row.counts) for row in connection.execute(query)}
