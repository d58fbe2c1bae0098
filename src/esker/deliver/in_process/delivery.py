"""Deliver changes to a consumer from this process alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from esker.deliver.in_process.append_steps import AppendSteps
from esker.deliver.in_process.log_steps import LogSteps
from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.in_process.only_spark import why_for_messages
from esker.deliver.in_process.tags import move_tag
from esker.deliver.ordered_rows import ordered
from esker.deliver.outcome import Letters, sent_from_here
from esker.deliver.sending import Counts
from esker.deliver.stepwise import StepwiseDelivery
from esker.deliver.subscription import Step, Subscription
from esker.deliver.targets.target import Target
from esker.errors import ReindexNeeded
from esker.events import Listener
from esker.ledger.leases import Lease
from esker.ledger.offsets import Offset
from esker.ledger.state import State
from esker.reading.lake import Lake


def check_possible(subscription: Subscription) -> None:
    """Raise NeedsSpark for a consumer whose messages only Spark makes."""
    why = why_for_messages(subscription.consumer)
    if why is not None:
        raise NeedsSpark(why)


@dataclass(frozen=True)
class _NoInputs:
    """A consumer that joins no other tables."""

    consumer: str
    version: int = 0
    snapshots: Mapping[str, int | None] = field(default_factory=dict)

    def check(self, offset: Offset) -> None:
        if gone := list(offset.inputs):
            why = f"enrich: {', '.join(gone)} was taken out, and its sequence numbers are in versions."
            raise ReindexNeeded(self.consumer, why)

    def told(self, offset: Offset) -> Offset:
        return replace(offset, inputs={}, beside=0)

    def tagged(self, offset: Offset, tag: str) -> Offset:
        return self.told(offset)

    def tag(self, tag: str, snapshots: Mapping[str, int | None] | None = None) -> None:
        return


class DeliveryInProcess(StepwiseDelivery):
    """One delivery to one consumer. Whatever needs Spark raises NeedsSpark, before anything of it is sent."""

    feed: LogSteps | AppendSteps
    travels = False

    def __init__(
        self,
        lake: Lake,
        state: State,
        subscription: Subscription,
        target: Target,
        letters: Letters,
        listen: Listener,
        lease: Lease | None,
        *,
        alone: bool,
    ) -> None:
        """`alone`: there is no Spark to go to, and steps of any size are sent from here."""
        self._lake, self._alone = lake, alone
        super().__init__(lake.project, state, subscription, target, letters, listen, lease)
        plan = self.plan
        if plan is not None and plan.is_verified:
            raise NeedsSpark("a reindex has sent all rows, and is ended first")

    def open_tables(self) -> None:
        own = self.subscription
        check_possible(own)
        if own.pipeline.is_keyed:
            self.feed = LogSteps(self._lake, own, alone=self._alone)
        else:
            self.feed = AppendSteps(self._lake, own)

    @property
    def inputs(self) -> _NoInputs:
        return _NoInputs(self.subscription.name)

    def send_step(self, step: Step) -> Counts:
        if step.count == 0:
            return Counts()  # files were put together, and no row is new
        limit = self.subscription.consumer.batch.spark
        if step.count > limit and not self._alone:
            raise NeedsSpark(f"a step has {step.count} changes, more than batch: {{spark: {limit}}}")
        assert step.rows is not None
        rows = ordered(step.rows(), self.subscription.ids, newest=self.target.keeps_versions)
        return sent_from_here(self.sending(), self.letters, rows)

    def send_concerned(self, offset: Offset) -> Counts:
        return Counts()  # it joins no other tables

    def drop_start_tag(self) -> None:
        move_tag(self._lake, self.feed.log, self.start_tag, None)

    def untag_reindex(self) -> None:
        raise NeedsSpark("a reindex that was stopped has left tags")
