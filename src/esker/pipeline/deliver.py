"""Deliver changes to consumers, one delivery at a time for each, and remember how it went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from esker.deliver.delivery import Delivery
from esker.deliver.feed import Subscription
from esker.deliver.reindex import Reindex, unfinished
from esker.deliver.sending import Counts
from esker.deliver.targets import open_target
from esker.deliver.targets.target import Target
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import EskerError, Interrupted, StateError, Unexpected, common_status
from esker.events import Listener, silent
from esker.ledger.dead_letters import DeadLetters
from esker.ledger.entry import read_head
from esker.ledger.leases import Lease, LeaseTaken, held
from esker.ledger.offsets import record_delivery
from esker.ledger.state import State
from esker.pipeline.run import Start
from esker.pipeline.tables import dead_letters_of, table_of
from esker.project import Project
from esker.project.secrets import redact

DeliveryStatus = Literal["succeeded", "skipped", "failed"]
Work = Callable[[Delivery, "DeliveryResult"], Iterator["DeliveryResult"]]
"""Does something with a delivery that is open, and yields the result as it grows."""


@dataclass(frozen=True)
class DeliveryResult:
    """How a delivery to one consumer ended."""

    consumer: str
    status: DeliveryStatus
    table: str
    since: int | None = None
    """It was told up to this changeset before…"""
    until: int | None = None
    """…and is up to this one now."""
    changesets: int = 0
    rows: Counts = field(default_factory=Counts)
    dead: int = 0
    """Dead letters that wait."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: EskerError | None = None

    def as_json(self) -> dict[str, Any]:
        document = {
            "consumer": self.consumer,
            "status": self.status,
            "table": self.table,
            "since": self.since,
            "until": self.until,
            "changesets": self.changesets,
            "rows": asdict(self.rows),
            "dead": self.dead,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }
        if self.error is not None:
            document["error"] = self.error.as_json()
        return document


@dataclass(frozen=True)
class DeliveryReport:
    """How all deliveries of one call ended."""

    consumers: Sequence[DeliveryResult]

    @property
    def status(self) -> DeliveryStatus:
        order: tuple[DeliveryStatus, ...] = ("failed", "succeeded")
        found = {result.status for result in self.consumers}
        return next((status for status in order if status in found), "skipped")

    @property
    def exit_status(self) -> int:
        """0 when all went well; the errors' status when they agree on one; else 1."""
        return common_status(result.error for result in self.consumers if result.error is not None)

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "consumers": [result.as_json() for result in self.consumers]}


def deliver(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener = silent,
    *,
    retry_dead: bool = False,
    ends: threading.Event | None = None,
) -> DeliveryResult:
    """Deliver what is new to a consumer. Errors are in the result; only an interruption is raised.

    With `retry_dead`, dead letters are sent first, each as its row is by now. When `ends` is set, it stops
    behind the step that it is at. A reindex that has sent all rows, and was stopped then, is ended first.
    """

    def work(delivery: Delivery, result: DeliveryResult) -> Iterator[DeliveryResult]:
        plan = unfinished(delivery)
        if plan is not None and plan.is_verified:
            since = delivery.offset().changeset
            done = Reindex(delivery, plan).end()
            note = "a reindex was ended that had been stopped"
            note += f": index {plan.into}" if plan.into is not None else ""
            result = replace(
                result, since=since, changesets=done.changesets, rows=done.counts, notes=(*result.notes, note)
            )
        if retry_dead:
            result = replace(result, rows=result.rows + delivery.retry_dead())
            yield result
        offset = delivery.offset()
        since = offset.changeset if result.since is None else result.since
        result = replace(result, since=since, until=offset.changeset)
        yield result
        for _, until, changesets, counts in delivery.steps():
            result = replace(
                result,
                until=until.changeset,
                changesets=result.changesets + changesets,
                rows=result.rows + counts,
            )
            yield result
            if ends is not None and ends.is_set():
                return

    return with_delivery(project, start, state, name, listen, work)


def with_delivery(
    project: Project, start: Start, state: State, name: str, listen: Listener, work: Work
) -> DeliveryResult:
    """Do something for a consumer while nobody else delivers to it. Errors are in the result."""
    begun = time.monotonic()
    consumer = project.consumer(name)
    try:
        table = str(table_of(project, project.pipeline(consumer.source)))
    except EskerError as error:  # one of a family's pipelines, whose table is not known
        return DeliveryResult(name, "failed", consumer.source, error=error)
    result = DeliveryResult(name, "succeeded", table)
    try:
        with held(state, lease_of(project, name)) as lease:
            for growing in _worked(project, start, state, lease, result, listen, work):
                result = growing
    except LeaseTaken as taken:
        note = f"another delivery is active: {taken.holder}"
        return replace(result, status="skipped", notes=(note,))
    except KeyboardInterrupt:
        raise Interrupted from None
    except _Failed as failure:
        result = replace(failure.result, status="failed", error=failure.told)
    except EskerError as error:
        result = replace(result, status="failed", error=error)
    except Exception as error:
        result = replace(result, status="failed", error=Unexpected.reported(error, redact))
    result = replace(result, seconds=time.monotonic() - begun)
    try:
        record_delivery(state, project.state_key, name, result.as_json())
    except StateError as error:
        result = replace(result, notes=(*result.notes, f"not in the history: {error.reason}"))
    return result


class _Failed(Exception):
    """What went wrong, and what was done before."""

    def __init__(self, result: DeliveryResult, error: Exception) -> None:
        self.result = result
        self.told = error if isinstance(error, EskerError) else Unexpected.reported(error, redact)
        super().__init__(str(error))


def _worked(
    project: Project,
    start: Start,
    state: State,
    lease: Lease,
    result: DeliveryResult,
    listen: Listener,
    work: Work,
) -> Iterator[DeliveryResult]:
    engine = start()
    subscription = subscribed(project, result.consumer)
    target = opened(project, result.consumer)
    letters = DeadLetters(engine, dead_letters_of(project, subscription.table, result.consumer))
    engine.open_catalog(subscription.table.catalog)
    if not _has_published(engine, subscription):
        yield replace(
            result, notes=(f"pipeline {subscription.consumer.source} has not published anything yet",)
        )
        return
    try:
        for growing in work(Delivery(engine, state, subscription, target, letters, listen, lease), result):
            result = growing
            yield growing
    except KeyboardInterrupt:
        engine.cancel()
        raise
    except Exception as error:
        waiting = _waiting(letters)
        raise _Failed(replace(result, dead=waiting), error) from error
    yield replace(result, dead=_waiting(letters))


def _waiting(letters: DeadLetters) -> int:
    return len(letters.waiting().letters)


def _has_published(engine: Engine, subscription: Subscription) -> bool:
    """Tell whether a pipeline has made the table that its consumers are told of."""
    if find_table(engine, subscription.table) is None:
        return False
    if not subscription.pipeline.is_keyed:
        return True
    return read_head(Attempt(engine, subscription.table).properties) is not None


def subscribed(project: Project, name: str) -> Subscription:
    """Return a consumer with its pipeline and table, or raise UnknownConsumer or UnknownPipeline."""
    consumer = project.consumer(name)
    pipeline = project.pipeline(consumer.source)
    return Subscription(name, consumer, pipeline, table_of(project, pipeline))


def opened(project: Project, name: str) -> Target:
    """Return the target of a consumer."""
    return open_target(project.consumer(name).to, project)


def lease_of(project: Project, name: str) -> str:
    """Return the lease that whoever delivers to a consumer holds."""
    return f"{project.state_key}/consumer/{name}"
