"""Deliver changes to consumers, one delivery at a time for each, and remember how it went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.outcome import Letters
from esker.deliver.sending import Counts
from esker.deliver.stepwise import StepwiseDelivery
from esker.deliver.subscription import Subscription
from esker.deliver.targets import open_target
from esker.deliver.targets.target import Target
from esker.engine.pins import has_spark
from esker.errors import EskerError, Interrupted, SparkNotInstalled, StateError, Unexpected, common_status
from esker.events import Listener, silent
from esker.ledger.leases import Lease, LeaseTaken, held
from esker.ledger.offsets import record_delivery
from esker.ledger.state import State
from esker.pipeline.tables import dead_letters_of, table_of
from esker.project import Project
from esker.project.secrets import redact

if TYPE_CHECKING:
    from esker.deliver.delivery import Delivery
    from esker.engine.session import Engine
    from esker.reading.lake import Lake

Start = Callable[[], "Engine"]
"""Starts Spark, or gives the one that runs."""
DeliveryStatus = Literal["succeeded", "skipped", "failed"]
Work = Callable[["Delivery", "DeliveryResult"], Iterator["DeliveryResult"]]
"""Does something with a delivery that is open, with Spark, and yields the result as it grows."""
InProcess = Callable[[StepwiseDelivery, "DeliveryResult"], Iterator["DeliveryResult"]]
"""Does it without Spark, or raises NeedsSpark."""


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
    holder: str | None = None
    """Who delivered to the consumer when this was skipped."""

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
    lake: Lake | None = None,
    hands_over: bool = False,
) -> DeliveryResult:
    """Deliver what is new to a consumer. Errors are in the result; only an interruption is raised.

    With `retry_dead`, dead letters are sent first, each as its row is by now. When `ends` is set, it stops
    behind the step that it is at. A reindex that has sent all rows, and was stopped then, is ended first.
    With a `lake`, Spark starts only for what this process cannot do alone. With `hands_over`, another
    runner has Spark: work for Spark, such as large steps, is an error here.
    """

    def with_spark(delivery: Delivery, result: DeliveryResult) -> Iterator[DeliveryResult]:
        from esker.deliver.reindex import Reindex, unfinished  # noqa: PLC0415 (PySpark)

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
        yield from steps(delivery, result)

    def steps(delivery: StepwiseDelivery, result: DeliveryResult) -> Iterator[DeliveryResult]:
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

    here = None if retry_dead else steps
    return with_delivery(
        project, start, state, name, listen, with_spark, here=here, lake=lake, hands_over=hands_over
    )


def with_delivery(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener,
    work: Work,
    *,
    here: InProcess | None = None,
    lake: Lake | None = None,
    hands_over: bool = False,
) -> DeliveryResult:
    """Do something for a consumer while nobody else delivers to it. Errors are in the result.

    With a `lake`, and something to do `here`, this process does alone what it can.
    """
    begun = time.monotonic()
    consumer = project.consumer(name)
    try:
        table = str(table_of(project, project.pipeline(consumer.source)))
    except EskerError as error:  # one of a family's pipelines, whose table is not known
        return DeliveryResult(name, "failed", consumer.source, error=error)
    result = DeliveryResult(name, "succeeded", table)
    try:
        with held(state, lease_of(project, name)) as lease:
            opening = _Opening(project, state, lease, listen, alone=not (has_spark() or hands_over))
            if here is not None and lake is not None:
                growing = _with_as_little_as_possible(opening, start, result, work, here, lake)
            else:
                growing = _with_spark(opening, start, result, work)
            for grown in growing:
                result = grown
    except LeaseTaken as taken:
        note = f"another delivery is active: {taken.holder}"
        return replace(result, status="skipped", notes=(note,), holder=taken.holder)
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


@dataclass(frozen=True)
class _Opening:
    """What a delivery is opened with, whoever reads the rows."""

    project: Project
    state: State
    lease: Lease
    listen: Listener
    alone: bool
    """There is no Spark to go to."""


def _with_as_little_as_possible(
    opening: _Opening, start: Start, result: DeliveryResult, work: Work, here: InProcess, lake: Lake
) -> Iterator[DeliveryResult]:
    """Do it without Spark, and go on with Spark from where that cannot be."""
    try:
        for grown in _in_process(opening, lake, result, here):
            result = grown
            yield grown
    except NeedsSpark as needed:
        if not has_spark():
            raise SparkNotInstalled(f'consumer "{result.consumer}"', needed.why) from None
        yield from _with_spark(opening, start, result, work)


def _in_process(
    opening: _Opening, lake: Lake, result: DeliveryResult, work: InProcess
) -> Iterator[DeliveryResult]:
    """Do it without Spark, or raise NeedsSpark."""
    from esker.pipeline.in_process import NothingPublished, open_here  # noqa: PLC0415 (PyIceberg)

    project, name = opening.project, result.consumer
    subscription, target = subscribed(project, name), opened(project, name)
    try:
        delivery = open_here(
            lake, opening.state, subscription, target, opening.listen, opening.lease, alone=opening.alone
        )
    except NothingPublished:
        yield _nothing_published(result, subscription)
        return
    yield from _told(delivery.letters, result, work(delivery, result))


def _with_spark(
    opening: _Opening, start: Start, result: DeliveryResult, work: Work
) -> Iterator[DeliveryResult]:
    if not has_spark():
        why = "dead letters, ids and reindexes read rows as they are now"
        raise SparkNotInstalled(f'consumer "{result.consumer}"', why)
    from esker.deliver.delivery import Delivery  # noqa: PLC0415 (PySpark)
    from esker.ledger.dead_letters import DeadLetters  # noqa: PLC0415
    from esker.pipeline.published import has_published  # noqa: PLC0415

    engine, project, name = start(), opening.project, result.consumer
    subscription, target = subscribed(project, name), opened(project, name)
    letters = DeadLetters(engine, dead_letters_of(project, subscription.table, name))
    engine.open_catalog(subscription.table.catalog)
    if not has_published(engine, subscription):
        yield _nothing_published(result, subscription)
        return
    delivery = Delivery(engine, opening.state, subscription, target, letters, opening.listen, opening.lease)
    try:
        yield from _told(letters, result, work(delivery, result))
    except KeyboardInterrupt:
        engine.cancel()
        raise


def _nothing_published(result: DeliveryResult, subscription: Subscription) -> DeliveryResult:
    note = f"pipeline {subscription.consumer.source} has not published anything yet"
    return replace(result, notes=(note,))


def _told(
    letters: Letters, result: DeliveryResult, growing: Iterator[DeliveryResult]
) -> Iterator[DeliveryResult]:
    """Yield results as they grow, at the end with the number of dead letters. Raises _Failed."""
    try:
        for grown in growing:
            result = grown
            yield grown
    except NeedsSpark:
        raise
    except Exception as error:
        raise _Failed(replace(result, dead=len(letters.waiting().letters)), error) from error
    yield replace(result, dead=len(letters.waiting().letters))


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
