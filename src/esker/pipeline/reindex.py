"""Send all rows, or some, to a consumer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from esker.deliver.delivery import Delivery
from esker.deliver.reindex import Reindex
from esker.deliver.reindex_tasks import Task
from esker.errors import ConsumerBusy
from esker.events import Listener, silent
from esker.ledger.dead_letters import DeadLetters
from esker.ledger.leases import Lease, LeaseTaken, held
from esker.ledger.state import State
from esker.pipeline.deliver import DeliveryResult, Start, lease_of, opened, subscribed, with_delivery
from esker.pipeline.tables import dead_letters_of
from esker.project import Project


@dataclass(frozen=True)
class ReindexTasks:
    """The tasks of a reindex, for whoever does them elsewhere."""

    consumer: str
    snapshot_id: int
    into: str | None
    tasks: Sequence[Task]

    def as_json(self) -> dict[str, Any]:
        return {
            "consumer": self.consumer,
            "snapshot_id": self.snapshot_id,
            "into": self.into,
            "tasks": [task.as_json() for task in self.tasks],
        }


@dataclass(frozen=True)
class GivenUpReindex:
    """A reindex that was given up."""

    consumer: str
    snapshot_id: int
    into: str | None
    """The index that it has begun to fill, which is left as it is; None for a target that is no index."""

    def as_json(self) -> dict[str, Any]:
        return {"consumer": self.consumer, "snapshot_id": self.snapshot_id, "into": self.into}


def reindex(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener = silent,
    *,
    into: str | None = None,
    parallel: int | None = None,
    rate: float | None = None,
    anew: bool = False,
) -> DeliveryResult:
    """Send all rows to a consumer, and what was published meanwhile. Errors are in the result."""
    settings = project.consumer(name).reindex

    def work(delivery: Delivery, result: DeliveryResult) -> Iterator[DeliveryResult]:
        going = Reindex.open(delivery, into, anew=anew)
        changeset = going.plan.offset.changeset
        notes: tuple[str, ...] = (f"index {going.plan.into}",) if going.plan.into is not None else ()
        if going.was_begun:
            notes = (*notes, "gone on with what had begun")
        result = replace(result, until=changeset, notes=notes)
        yield result
        done = going.run(parallel or settings.parallel, rate or settings.rate)
        until = delivery.offset().changeset
        yield replace(result, until=until, changesets=done.changesets, rows=done.counts)

    return with_delivery(project, start, state, name, listen, work)


def reindex_ids(
    project: Project, start: Start, state: State, name: str, ids: Sequence[str], listen: Listener = silent
) -> DeliveryResult:
    """Send some rows to a consumer, each as it was when it was told last. Errors are in the result."""

    def work(delivery: Delivery, result: DeliveryResult) -> Iterator[DeliveryResult]:
        counts = delivery.send_ids(list(dict.fromkeys(ids)))
        changeset = delivery.offset().changeset
        yield replace(result, since=changeset, until=changeset, rows=counts)

    return with_delivery(project, start, state, name, listen, work)


def list_tasks(
    project: Project, start: Start, state: State, name: str, *, into: str | None = None, anew: bool = False
) -> ReindexTasks:
    """Begin a reindex, unless one has begun, and return its tasks. Nothing is sent. Raises ConsumerBusy."""
    try:
        with held(state, lease_of(project, name)) as lease:
            going = Reindex.open(_delivery(project, start, state, name, silent, lease), into, anew=anew)
            return ReindexTasks(name, going.plan.snapshot, going.plan.into, going.tasks)
    except LeaseTaken as taken:
        raise ConsumerBusy(name, taken.holder) from None


def give_up(project: Project, start: Start, state: State, name: str) -> GivenUpReindex:
    """End a reindex that is not done: nothing is kept for it. Raises ConsumerBusy and ReindexUnsuitable."""
    try:
        with held(state, lease_of(project, name)) as lease:
            plan = Reindex.give_up(_delivery(project, start, state, name, silent, lease))
            return GivenUpReindex(name, plan.snapshot, plan.into)
    except LeaseTaken as taken:
        raise ConsumerBusy(name, taken.holder) from None


def _delivery(
    project: Project, start: Start, state: State, name: str, listen: Listener, lease: Lease | None
) -> Delivery:
    engine, subscription = start(), subscribed(project, name)
    engine.open_catalog(subscription.table.catalog)
    letters = DeadLetters(engine, dead_letters_of(project, subscription.table, name))
    return Delivery(engine, state, subscription, opened(project, name), letters, listen, lease)
