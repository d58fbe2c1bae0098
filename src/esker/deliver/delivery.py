"""Deliver changes to a consumer with Spark: joins, SELECTs, and more rows than this process should hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from esker.deliver.append_feed import AppendFeed
from esker.deliver.carry import Carrier
from esker.deliver.change_feed import ChangeFeed
from esker.deliver.enrich import Enrichments
from esker.deliver.feed import Feed
from esker.deliver.made_rows import MadeRows
from esker.deliver.ordered_rows import ordered
from esker.deliver.sending import Counts
from esker.deliver.stepwise import StepwiseDelivery
from esker.deliver.subscription import Step, Subscription
from esker.deliver.targets.target import Target
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.errors import ReindexNeeded, ReindexUnsuitable
from esker.events import Listener
from esker.ledger.consumer_tags import move_tag
from esker.ledger.dead_letter_events import DeadLetter
from esker.ledger.dead_letters import DeadLetters
from esker.ledger.leases import Lease
from esker.ledger.offsets import Offset
from esker.ledger.reindexes import ReindexPlan, mark_verified
from esker.ledger.state import State


def open_feed(engine: Engine, subscription: Subscription) -> Feed:
    """Return the changes of a consumer's table, as they are now."""
    if subscription.pipeline.is_keyed:
        return ChangeFeed(engine, subscription)
    return AppendFeed(engine, subscription)


class Delivery(StepwiseDelivery):
    """One delivery to one consumer, with Spark. Other tables are read as they are when it begins."""

    feed: Feed
    letters: DeadLetters

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
        self.engine = engine
        super().__init__(engine.project, state, subscription, target, letters, listen, lease)

    def open_tables(self) -> None:
        engine, own = self.engine, self.subscription
        self.feed = open_feed(engine, own)
        self.made = MadeRows(engine, own, Enrichments.pin(engine, own))

    @property
    def inputs(self) -> Enrichments:
        return self.made.enrichments

    def go_into(self, plan: ReindexPlan) -> ReindexPlan:
        """Deliver from now on to where a reindex has sent all rows, behind them; return it as it is then.

        Raises ConsumerFenced.
        """
        assert self.lease is not None, "who does a task of a reindex moves nothing"
        project, name = self.engine.project.state_key, self.subscription.name
        behind = plan.offset if plan.into is not None else self._due_before(plan.offset)
        verified = mark_verified(self.state, project, name, self.lease, self.stored, plan, behind)
        self.stored = behind
        return verified

    def _due_before(self, offset: Offset) -> Offset:
        """Return how far a target is that all rows were sent to, as they were at an offset.

        It has what it was told before as well. Which of that is gone only the changes tell that were due, so
        that these come behind the rows, where they are still there.
        """
        try:
            known = self.known_offset()
            if known is None or known.is_beginning or known.changeset >= offset.changeset:
                return offset
            self.feed.check(known)
            self.inputs.check(known)
        except ReindexNeeded:
            return offset
        return known

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
        offset = self.checked_offset()
        if offset.is_beginning or not ids:
            return Counts()
        carrier = Carrier(self.engine, self.letters, replace(self.sending(), retries=True))
        # All at once: for each part of them the whole table would be read again.
        rows = self.made.content(self.feed.newest_of(ids, offset))
        if len(ids) > self.subscription.consumer.batch.spark:
            with self.at_target(offset):
                return carrier.frame(rows)
        with explained(f'cannot read table "{self.subscription.table}"', self.engine.log):
            found = to_arrow(rows)
        with self.at_target(offset):
            return carrier.rows(found)

    def retry_dead(self) -> Counts:
        """Send the rows of dead letters: each as it is by now, or not at all where a newer change is due."""
        return self.retry(self.letters.waiting().letters.values())

    def retry(self, letters: Iterable[DeadLetter]) -> Counts:
        """Do the same with some letters."""
        # An id with nothing in it finds no row, and would delete one whose id is that text.
        return self._send_ids(sorted(letter.id for letter in letters if not letter.has_null))

    def drop_start_tag(self) -> None:
        move_tag(self.engine, self.feed.log, self.start_tag, None)

    def untag_reindex(self) -> None:
        """Keep no snapshots for a reindex any more. The log comes last: it tells who was stopped here."""
        self.inputs.untag(self.reindex_tag)
        for table in (self.subscription.table, self.feed.log):
            move_tag(self.engine, table, self.reindex_tag, None)

    def send_step(self, step: Step) -> Counts:
        if step.count == 0:
            return Counts()  # files were put together, and no row is new
        newest = self.target.keeps_versions
        carrier = Carrier(self.engine, self.letters, self.sending())
        few = step.count <= self.subscription.consumer.batch.spark
        if few and step.rows is not None and not self.made.needs_spark:
            return carrier.rows(ordered(step.rows(), self.subscription.ids, newest=newest))
        with (
            ExitStack() as stack,
            explained(f'cannot read the changes of table "{self.subscription.table}"', self.engine.log),
        ):
            rows = self.made.of_frame(step.frame(stack), newest=newest)
            return carrier.rows(to_arrow(rows)) if few else carrier.frame(rows)

    def send_concerned(self, offset: Offset) -> Counts:
        """Send rows that did not change, and to which rows of other tables belong that did."""
        if self.feed.head().is_beginning:
            return Counts()
        rows = self.inputs.concerned(offset.inputs, self.feed.standing(offset))
        if rows is None:
            return Counts()
        return Carrier(self.engine, self.letters, self.sending()).frame(self.made.content(rows))
