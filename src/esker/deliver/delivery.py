"""Deliver changes to a consumer: read behind its offset, send, then move the offset.

A stop at any point sends some messages again, and loses none: the offset moves when all messages of a
step have arrived, or are dead letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from esker.deliver.append_feed import AppendFeed
from esker.deliver.carry import Carrier
from esker.deliver.change_feed import ChangeFeed
from esker.deliver.enrich import Enrichments
from esker.deliver.feed import Feed, Step, Subscription
from esker.deliver.made_rows import MadeRows
from esker.deliver.sending import Counts, Sending
from esker.deliver.targets.target import Index, Target
from esker.deliver.transform import Transform
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.errors import ConsumerFenced, IndexGone, ReindexNeeded, ReindexUnsuitable
from esker.events import Delivered, DeliveryStep, Listener
from esker.ledger.consumer_tags import consumer_tag, move_tag, start_tag
from esker.ledger.dead_letters import DeadLetter, DeadLetters
from esker.ledger.leases import Lease
from esker.ledger.offsets import Offset, store_offset, stored_offset
from esker.ledger.process import this_process
from esker.ledger.reindexes import ReindexPlan, find_plan, mark_verified, reindex_tag
from esker.ledger.state import State


def open_feed(engine: Engine, subscription: Subscription) -> Feed:
    """Return the changes of a consumer's table, as they are now."""
    if subscription.pipeline.is_keyed:
        return ChangeFeed(engine, subscription)
    return AppendFeed(engine, subscription)


class Delivery:
    """One delivery to one consumer. Other tables are read as they are when it begins."""

    def __init__(
        self,
        engine: Engine,
        state: State,
        subscription: Subscription,
        target: Target,
        letters: DeadLetters,
        listen: Listener,
        lease: Lease | None,
    ) -> None:
        """`lease` is of whoever may move the offset."""
        self.engine, self.state, self.subscription = engine, state, subscription
        self.target, self.letters, self.listen, self.lease = target, letters, listen, lease
        self.look_at_offset()
        self.look_again()

    def look_at_offset(self) -> None:
        """Go on from where the state database says."""
        self._stored = stored_offset(self.state, self.engine.project.state_key, self.subscription.name)

    def look_again(self) -> None:
        """Go on with the tables as they are by now."""
        engine, own = self.engine, self.subscription
        self.feed = open_feed(engine, own)
        self._keeps_all = self.start_tag in self.feed.tag_names
        self.made = MadeRows(engine, own, Enrichments.pin(engine, own))

    def steps(self) -> Iterator[tuple[Offset, Offset, int, Counts]]:
        """Deliver what is new, step by step; yield where each began and ended, its changesets and counts.

        Raises ReindexNeeded, and what the target raises.
        """
        offset, enrichments = self._checked_offset(), self.made.enrichments
        for step in self.feed.steps(offset, self.subscription.consumer.batch.rows):
            with self._at_target(offset):
                counts = self._deliver(step)
            self.reach(DeliveryStep.SENT)
            until = replace(step.until, inputs=offset.inputs, beside=offset.beside)
            self.store(until)
            yield offset, until, step.changesets, counts
            offset = until
        if offset.inputs != enrichments.snapshots:
            with self._at_target(offset):
                counts = self._deliver_concerned(offset)
            self.reach(DeliveryStep.SENT)
            until = replace(offset, inputs=enrichments.snapshots, is_start=False)
            self.store(until)
            self._tag_inputs()
            yield offset, until, 0, counts

    @contextmanager
    def _at_target(self, offset: Offset) -> Iterator[None]:
        """Send what is behind an offset: to an index that has what came before it, or raise ReindexNeeded."""
        if isinstance(self.target, Index) and (offset.is_beginning or offset.is_start):
            self.target.begin()
        try:
            yield
        except IndexGone as gone:
            raise ReindexNeeded(self.subscription.name, f"{self.target.describe()}: {gone.reason}") from gone

    def _checked_offset(self) -> Offset:
        """Return where to go on, or raise ReindexNeeded."""
        offset, version = self.offset(), self.made.enrichments.version
        self.feed.check(offset)
        self.made.enrichments.check(offset)
        if self.plan is None:
            # Who was stopped before this has left what was told to whoever expires snapshots.
            self.made.enrichments.tag(self.tag, offset.inputs)
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
        known = self._known_offset()
        if known is not None:
            return known
        match own.consumer.start:
            case "beginning":
                begin = self.made.enrichments.told(self.feed.beginning())
                if begin.inputs:
                    # What changes in other tables while all this is told must be told once more.
                    self.store(begin)
                    self._tag_inputs()
                return begin
            case "now":
                head = replace(self.made.enrichments.told(self.feed.head()), is_start=True)
                self.store(head)
                # Also while a reindex goes on: without it, a lost database would make a later now of it.
                self.tag_log(head)
                self._tag_inputs()
                return head
        raise ReindexNeeded(own.name, "It starts with a reindex, and none was done yet.")

    def _known_offset(self) -> Offset | None:
        """Return how far the consumer is, if it was ever told anything. Raises ReindexNeeded."""
        if self._stored is not None:
            return self._stored
        tagged = self.feed.tag_names.get(self.tag)
        if tagged is None:
            return None
        found = self.feed.tagged(tagged)
        if found is None:
            why = "Its offset is lost, and the tag on the log does not tell it."
            raise ReindexNeeded(self.subscription.name, why)
        return self.made.enrichments.tagged(found, self.tag)

    def store(self, offset: Offset) -> None:
        """Remember how far the consumer is. Raises ConsumerFenced."""
        assert self.lease is not None, "who does a task of a reindex moves nothing"
        project, name = self.engine.project.state_key, self.subscription.name
        store_offset(self.state, project, name, self.lease, self._stored, offset)
        self._stored = offset
        self.reach(DeliveryStep.STORED)
        if self.plan is None:
            # While a reindex goes on, what comes behind its snapshot must stay in the log.
            self.tag_log(offset)
        self.reach(DeliveryStep.TAGGED)

    def tag_log(self, offset: Offset) -> None:
        """Let the tag on the log say how far the consumer is."""
        self.feed.tag(self.tag, offset)
        if self._keeps_all and offset.snapshot is not None:
            move_tag(self.engine, self.feed.log, self.start_tag, None)
            self._keeps_all = False

    def go_into(self, plan: ReindexPlan) -> ReindexPlan:
        """Deliver from now on to where a reindex has sent all rows, behind them; return it as it is then.

        Raises ConsumerFenced.
        """
        assert self.lease is not None, "who does a task of a reindex moves nothing"
        project, name = self.engine.project.state_key, self.subscription.name
        behind = plan.offset if plan.into is not None else self._due_before(plan.offset)
        verified = mark_verified(self.state, project, name, self.lease, self._stored, plan, behind)
        self._stored = behind
        return verified

    def _due_before(self, offset: Offset) -> Offset:
        """Return how far a target is that all rows were sent to, as they were at an offset.

        It has what it was told before as well. Which of that is gone only the changes tell that were due, so
        that these come behind the rows, where they are still there.
        """
        try:
            known = self._known_offset()
            if known is None or known.is_beginning or known.changeset >= offset.changeset:
                return offset
            self.feed.check(known)
            self.made.enrichments.check(known)
        except ReindexNeeded:
            return offset
        return known

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
            self.made.enrichments.tag(self.tag)

    @property
    def plan(self) -> ReindexPlan | None:
        """The consumer's reindex that has begun and is not done."""
        return find_plan(self.state, self.engine.project.state_key, self.subscription.name)

    def send_ids(self, ids: Sequence[str]) -> Counts:
        """Send some rows, by ids that a person names, as they were at the offset, or that they are gone.

        Raises ReindexUnsuitable for an id that no row can have, and while an index is filled; and what the
        target raises.
        """
        return self._send_ids(self.feed.ids_of_rows(ids))

    def _send_ids(self, ids: Sequence[str]) -> Counts:
        plan, name = self.plan, self.subscription.name
        if ids and plan is not None and plan.into is not None:
            # They would go to the present index, and be missing in the new one.
            why = f'A reindex into "{plan.into}" has begun and is not done.'
            raise ReindexUnsuitable(name, why, f"Let it end first: esker reindex {name}")
        offset = self._checked_offset()
        if offset.is_beginning or not ids:
            return Counts()
        carrier = Carrier(self.engine, self.letters, replace(self.sending(), retries=True))
        # All at once: for each part of them the whole table would be read again.
        rows = self.made.content(self.feed.newest_of(ids, offset))
        if len(ids) > self.subscription.consumer.batch.spark:
            with self._at_target(offset):
                return carrier.frame(rows)
        with explained(f'cannot read table "{self.subscription.table}"', self.engine.log):
            found = to_arrow(rows)
        with self._at_target(offset):
            return carrier.rows(found)

    def retry_dead(self) -> Counts:
        """Send the rows of dead letters: each as it is by now, or not at all where a newer change is due."""
        return self.retry(self.letters.waiting().letters.values())

    def retry(self, letters: Iterable[DeadLetter]) -> Counts:
        """Do the same with some letters."""
        # An id with nothing in it finds no row, and would delete one whose id is that text.
        return self._send_ids(sorted(letter.id for letter in letters if not letter.has_null))

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
                beside=self.made.enrichments.version,
                resolves=plan is None or plan.into is None or plan.is_verified,
                fence=self.fence,
            ),
            **facts,
        )

    @property
    def tag(self) -> str:
        """The tag on the log that says how far the consumer is."""
        return consumer_tag(self.engine.project.state_key, self.subscription.name)

    @property
    def start_tag(self) -> str:
        """The tag that keeps all changes until the first ones have been told."""
        return start_tag(self.engine.project.state_key, self.subscription.name)

    @property
    def reindex_tag(self) -> str:
        """The tag that keeps what a reindex reads, and on the log what is told behind it."""
        return reindex_tag(self.engine.project.state_key, self.subscription.name)

    def untag_reindex(self) -> None:
        """Keep no snapshots for a reindex any more. The log comes last: it tells who was stopped here."""
        self.made.enrichments.untag(self.reindex_tag)
        for table in (self.subscription.table, self.feed.log):
            move_tag(self.engine, table, self.reindex_tag, None)

    def reach(self, step: DeliveryStep, detail: str = "") -> None:
        """Tell whoever listens."""
        self.listen(Delivered(self.subscription.name, step, detail))

    def _deliver(self, step: Step) -> Counts:
        if step.count == 0:
            return Counts()  # files were put together, and no row is new
        newest = self.target.keeps_versions
        carrier = Carrier(self.engine, self.letters, self.sending())
        few = step.count <= self.subscription.consumer.batch.spark
        if few and step.rows is not None and not self.made.needs_spark:
            return carrier.rows(self.made.of_table(step.rows(), newest=newest))
        with (
            ExitStack() as stack,
            explained(f'cannot read the changes of table "{self.subscription.table}"', self.engine.log),
        ):
            rows = self.made.of_frame(step.frame(stack), newest=newest)
            return carrier.rows(to_arrow(rows)) if few else carrier.frame(rows)

    def _deliver_concerned(self, offset: Offset) -> Counts:
        """Send rows that did not change, and to which rows of other tables belong that did."""
        if self.feed.head().is_beginning:
            return Counts()
        rows = self.made.enrichments.concerned(offset.inputs, self.feed.standing(offset))
        if rows is None:
            return Counts()
        return Carrier(self.engine, self.letters, self.sending()).frame(self.made.content(rows))

    @cached_property
    def _transform(self) -> Transform | None:
        place = self.subscription.consumer.function
        if place is None:
            return None
        return Transform.find(place, self.engine.project.folder, self.subscription.ids)
