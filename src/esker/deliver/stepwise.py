"""Deliver step by step: send what is behind a consumer's offset, then move the offset.

A stop at any point sends some messages again, and loses none: the offset moves when all messages of a
step have arrived, or are dead letters. Who reads the rows, Spark or this process alone, is left to those who
build on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from esker.deliver.outcome import Letters
from esker.deliver.sending import Counts, Sending
from esker.deliver.subscription import Step, Subscription
from esker.deliver.targets.target import Index, Target
from esker.deliver.transform import Transform
from esker.errors import ConsumerFenced, IndexGone, ReindexNeeded
from esker.events import Delivered, DeliveryStep, Listener
from esker.ledger.leases import Lease
from esker.ledger.offsets import Offset, store_offset, stored_offset
from esker.ledger.process import this_process
from esker.ledger.reindexes import ReindexPlan, find_plan, reindex_tag
from esker.ledger.state import State
from esker.ledger.tag_names import consumer_tag, start_tag
from esker.project import Project

if TYPE_CHECKING:
    from esker.engine.iceberg.metadata import SnapshotId


class Steps(Protocol):
    """The changes of a table as they are now, with the tags on its log."""

    @property
    def tag_names(self) -> dict[str, SnapshotId]:
        """The tags on the log, each with the snapshot that it names."""

    def head(self) -> Offset:
        """Return the offset of a consumer to which everything was delivered."""

    def beginning(self) -> Offset:
        """Return the offset of a consumer to which nothing was delivered. Raises ReindexNeeded."""

    def tagged(self, snapshot: SnapshotId) -> Offset | None:
        """Return the offset that a tag on the log stands for."""

    def check(self, offset: Offset) -> None:
        """Raise ReindexNeeded unless all changes behind an offset are there, and it is of this log."""

    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        """Yield the changes behind an offset, in steps of about so many rows."""

    def tag(self, name: str, offset: Offset) -> None:
        """Let a tag say how far a consumer is."""

    def keep_all(self, name: str) -> bool:
        """Let a tag keep all changes for a consumer at the beginning; tell whether one is needed for that."""


class Inputs(Protocol):
    """The other tables of a consumer, as they are when a delivery begins."""

    @property
    def version(self) -> int:
        """The sum of their sequence numbers."""

    @property
    def snapshots(self) -> Mapping[str, SnapshotId | None]:
        """The snapshot of each table, by the enrichment's name."""

    def check(self, offset: Offset) -> None:
        """Raise ReindexNeeded where rows would be older than those that were delivered."""

    def told(self, offset: Offset) -> Offset:
        """Return an offset with the tables as they are pinned."""

    def tagged(self, offset: Offset, tag: str) -> Offset:
        """Return an offset with the snapshots that a tag names on the other tables."""

    def tag(self, tag: str, snapshots: Mapping[str, SnapshotId | None] | None = None) -> None:
        """Let a tag keep snapshots: the next delivery compares with them."""


class StepwiseDelivery(ABC):
    """One delivery to one consumer."""

    feed: Steps
    travels = True
    """The transform may be sent to Spark's tasks."""

    def __init__(
        self,
        project: Project,
        state: State,
        subscription: Subscription,
        target: Target,
        letters: Letters,
        listen: Listener,
        lease: Lease | None,
    ) -> None:
        """`lease` is of whoever may move the offset."""
        self.project, self.state, self.subscription = project, state, subscription
        self.target, self.letters, self.listen, self.lease = target, letters, listen, lease
        self.look_at_offset()
        self.look_again()

    def look_again(self) -> None:
        """Go on with the tables as they are by now."""
        self.open_tables()
        self._keeps_all = self.start_tag in self.feed.tag_names

    @abstractmethod
    def open_tables(self) -> None:
        """Set `feed` and `inputs` from the tables as they are by now."""

    @property
    @abstractmethod
    def inputs(self) -> Inputs:
        """The other tables."""

    @abstractmethod
    def send_step(self, step: Step) -> Counts:
        """Send the changes of a step. Raises what the target raises."""

    @abstractmethod
    def send_concerned(self, offset: Offset) -> Counts:
        """Send rows that did not change, and to which rows of other tables belong that did."""

    @abstractmethod
    def drop_start_tag(self) -> None:
        """Remove the tag that keeps all changes."""

    @abstractmethod
    def untag_reindex(self) -> None:
        """Keep no snapshots for a reindex any more."""

    def look_at_offset(self) -> None:
        """Go on from where the state database says."""
        self.stored = stored_offset(self.state, self.project.state_key, self.subscription.name)

    def steps(self) -> Iterator[tuple[Offset, Offset, int, Counts]]:
        """Deliver what is new, step by step; yield where each began and ended, its changesets and counts.

        Raises ReindexNeeded, and what the target raises.
        """
        offset, inputs = self.checked_offset(), self.inputs
        for step in self.feed.steps(offset, self.subscription.consumer.batch.rows):
            with self.at_target(offset):
                counts = self.send_step(step)
            self.reach(DeliveryStep.SENT)
            until = replace(step.until, inputs=offset.inputs, beside=offset.beside)
            self.store(until)
            yield offset, until, step.changesets, counts
            offset = until
        if offset.inputs != inputs.snapshots:
            with self.at_target(offset):
                counts = self.send_concerned(offset)
            self.reach(DeliveryStep.SENT)
            until = replace(offset, inputs=inputs.snapshots, is_start=False)
            self.store(until)
            self._tag_inputs()
            yield offset, until, 0, counts

    @contextmanager
    def at_target(self, offset: Offset) -> Iterator[None]:
        """Send what is behind an offset: to an index that has what came before it, or raise ReindexNeeded."""
        if isinstance(self.target, Index) and (offset.is_beginning or offset.is_start):
            self.target.begin()
        try:
            yield
        except IndexGone as gone:
            raise ReindexNeeded(self.subscription.name, f"{self.target.describe()}: {gone.reason}") from gone

    def checked_offset(self) -> Offset:
        """Return where to go on, or raise ReindexNeeded."""
        offset, version = self.offset(), self.inputs.version
        self.feed.check(offset)
        self.inputs.check(offset)
        if self.plan is None:
            # Who was stopped before this has left what was told to whoever expires snapshots.
            self.inputs.tag(self.tag, offset.inputs)
            if self.reindex_tag in self.feed.tag_names:
                self.untag_reindex()  # it was stopped before it was written down
        if offset.is_beginning:
            # Also before the first offset is stored: a run may take old changes out of the log meanwhile.
            self._keeps_all = self.feed.keep_all(self.start_tag)
        if offset.beside != version:
            # Before the first message: versions that go out now must never come again lower.
            offset = replace(offset, beside=version)
            self.store(offset)
        return offset

    def offset(self) -> Offset:
        """Return where to go on: as the state database says, or the tag on the log, or the declaration."""
        own = self.subscription
        known = self.known_offset()
        if known is not None:
            return known
        match own.consumer.start:
            case "beginning":
                begin = self.inputs.told(self.feed.beginning())
                if begin.inputs:
                    # What changes in other tables while all this is told must be told once more.
                    self.store(begin)
                    self._tag_inputs()
                return begin
            case "now":
                head = replace(self.inputs.told(self.feed.head()), is_start=True)
                self.store(head)
                # Also while a reindex goes on: without it, a lost database would make a later now of it.
                self.tag_log(head)
                self._tag_inputs()
                return head
        raise ReindexNeeded(own.name, "It starts with a reindex, and none was done yet.")

    def known_offset(self) -> Offset | None:
        """Return how far the consumer is, if it was ever told anything. Raises ReindexNeeded."""
        if self.stored is not None:
            return self.stored
        tagged = self.feed.tag_names.get(self.tag)
        if tagged is None:
            return None
        found = self.feed.tagged(tagged)
        if found is None:
            why = "Its offset is lost, and the tag on the log does not tell it."
            raise ReindexNeeded(self.subscription.name, why)
        return self.inputs.tagged(found, self.tag)

    def store(self, offset: Offset) -> None:
        """Remember how far the consumer is. Raises ConsumerFenced."""
        assert self.lease is not None, "who does a task of a reindex moves nothing"
        project, name = self.project.state_key, self.subscription.name
        store_offset(self.state, project, name, self.lease, self.stored, offset)
        self.stored = offset
        self.reach(DeliveryStep.STORED)
        if self.plan is None:
            # While a reindex goes on, what comes behind its snapshot must stay in the log.
            self.tag_log(offset)
        self.reach(DeliveryStep.TAGGED)

    def tag_log(self, offset: Offset) -> None:
        """Let the tag on the log say how far the consumer is."""
        self.feed.tag(self.tag, offset)
        if self._keeps_all and offset.snapshot is not None:
            self.drop_start_tag()
            self._keeps_all = False

    def target_of(self, plan: ReindexPlan) -> Target:
        """Return where the rows of a reindex go."""
        if isinstance(self.target, Index) and plan.into is not None:
            return self.target.into(plan.into)
        return self.target

    def fence(self) -> None:
        """Raise ConsumerFenced if somebody else may deliver by now. Who does a task has no lease to lose."""
        if self.lease is not None and self.lease.is_lost:
            raise ConsumerFenced(self.subscription.name)

    def _tag_inputs(self) -> None:
        if self.plan is None:
            self.inputs.tag(self.tag)

    @property
    def plan(self) -> ReindexPlan | None:
        """The consumer's reindex that has begun and is not done."""
        return find_plan(self.state, self.project.state_key, self.subscription.name)

    def sending(self, **facts: Any) -> Sending:
        """Return how rows are sent now."""
        consumer, waiting, plan = self.subscription.consumer, self.letters.waiting(), self.plan
        target, known = self.target, waiting.letters
        if plan is not None and plan.is_verified and plan.into is not None:
            # Letters from before it are of what it replaces, and are done with when it has ended.
            target = self.target_of(plan)
            known = {id_: each for id_, each in known.items() if each.event >= plan.event}
        return replace(
            Sending(
                target=target,
                table=str(self.subscription.table),
                ids=self.subscription.ids,
                transform=self._transform,
                known=known,
                event=waiting.event + 1,
                moment=self.state.now(),
                driver=this_process(),
                notify=consumer.notify,
                lot=consumer.batch.send or self.target.lot,
                beside=self.inputs.version,
                resolves=plan is None or plan.into is None or plan.is_verified,
                fence=self.fence,
            ),
            **facts,
        )

    @property
    def tag(self) -> str:
        """The tag on the log that says how far the consumer is."""
        return consumer_tag(self.project.state_key, self.subscription.name)

    @property
    def start_tag(self) -> str:
        """The tag that keeps all changes until the first ones have been told."""
        return start_tag(self.project.state_key, self.subscription.name)

    @property
    def reindex_tag(self) -> str:
        """The tag that keeps what a reindex reads, and on the log what is told behind it."""
        return reindex_tag(self.project.state_key, self.subscription.name)

    def reach(self, step: DeliveryStep, detail: str = "") -> None:
        """Tell whoever listens."""
        self.listen(Delivered(self.subscription.name, step, detail))

    @cached_property
    def _transform(self) -> Transform | None:
        place = self.subscription.consumer.function
        if place is None:
            return None
        return Transform.find(place, self.project.folder, self.subscription.ids, travels=self.travels)
