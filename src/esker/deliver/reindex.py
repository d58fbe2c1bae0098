"""Send all rows of a table to a consumer: those of a pinned snapshot, divided into tasks.

A search index is filled anew beside the present one. When it holds what the snapshot holds, the consumer's
offset is that of the new index; what was published since is sent there, and then the alias leads there.
Whatever stops it before, the next call goes on with the tasks that are not done; after that, also the next
delivery ends it before it does anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self
from uuid import uuid4

from pyspark.sql import functions as F

from esker.deliver.carry import Carrier
from esker.deliver.delivery import Delivery
from esker.deliver.made_rows import in_order
from esker.deliver.reindex_tasks import Task, TaskWork, not_begun
from esker.deliver.sending import Counts, Sending
from esker.deliver.targets.target import Index
from esker.engine.compat import snapshot_frame
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.file_frame import SnapshotFiles
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import Snapshot
from esker.errors import ReindexNeeded, ReindexUnsuitable, ReindexUnverified
from esker.events import DeliveryStep
from esker.ledger.consumer_tags import move_tag
from esker.ledger.leases import Lease
from esker.ledger.reindexes import ReindexPlan, forget_plan, keep_plan
from esker.project.types import quoted

_LOOKS = 5
"""How often it is looked for what was published meanwhile, before the alias is switched: a busy table always
has something."""


@dataclass(frozen=True)
class Caught:
    """What was sent behind the snapshot of a reindex."""

    changesets: int = 0
    counts: Counts = field(default_factory=Counts)

    def __add__(self, other: Caught) -> Self:
        return type(self)(self.changesets + other.changesets, self.counts + other.counts)


def unfinished(delivery: Delivery) -> ReindexPlan | None:
    """Return a consumer's reindex that has begun and can go on."""
    found = delivery.plan
    if found is None or found.offset.table != delivery.feed.head().table:
        return None
    if found.is_verified:
        return found  # all rows of the snapshot were sent
    is_there = Attempt(delivery.engine, delivery.subscription.table).snapshot(found.snapshot) is not None
    return found if is_there else None


class Reindex(TaskWork):
    """A reindex of one consumer, begun or gone on with."""

    _delivery: Delivery

    def __init__(self, delivery: Delivery, begun: ReindexPlan | None, into: str | None = None) -> None:
        super().__init__(delivery)
        self.was_begun = begun is not None
        self.plan = begun or self._begin(into)

    @classmethod
    def open(cls, delivery: Delivery, into: str | None = None, *, anew: bool = False) -> Self:
        """Begin a reindex, or go on with one unless it is to be begun `anew`. Raises ReindexUnsuitable."""
        name = delivery.subscription.name
        if into is not None and not isinstance(delivery.target, Index):
            why = f"{delivery.target.describe()} is no search index: all is sent to the same place."
            raise ReindexUnsuitable(name, why, "Leave --into out.")
        found = None if anew else unfinished(delivery)
        if found is not None and into not in (None, found.into):
            why = f'A reindex into "{found.into}" has begun and is not done.'
            raise ReindexUnsuitable(name, why, "Let it end, or begin anew with --anew.")
        return cls(delivery, found, into)

    @classmethod
    def begun(cls, delivery: Delivery) -> Self:
        """Return the reindex that has begun and is not done, or raise ReindexUnsuitable."""
        found = unfinished(delivery)
        if found is None:
            raise not_begun(delivery)
        return cls(delivery, found)

    def _begin(self, into: str | None) -> ReindexPlan:
        """Pin a snapshot, and the changes behind it."""
        delivery, target = self._delivery, self._delivery.target
        snapshot, offset = delivery.feed.pinned()
        if snapshot is None:
            why = f'Table "{self._own.table}" has no rows yet.'
            raise ReindexUnsuitable(
                self._own.name, why, f"Run its pipeline first: esker run {self._own.consumer.source}"
            )
        delivery.feed.check_order()
        # Not the consumer's own tag: it would say that all before it was told, and nothing was sent yet.
        delivery.feed.tag(self._tag, offset)
        move_tag(delivery.engine, self._own.table, self._tag, snapshot)
        if isinstance(target, Index):
            into = into or f"{self._own.name}-{self._state.now():%Y%m%d-%H%M%S}"
            target.make(into)
        enrichments = delivery.made.enrichments
        enrichments.tag(self._tag)
        plan = ReindexPlan(
            id=str(uuid4()),
            snapshot=snapshot,
            # Tasks may read newer rows of other tables: what changed since now is told once more.
            offset=enrichments.told(offset),
            into=into,
            rows_per_task=self._own.consumer.reindex.rows,
            event=delivery.letters.waiting().event + 1,
        )
        delivery.fence()
        keep_plan(self._state, self._project, self._own.name, self._lease, plan)
        delivery.look_at_offset()
        delivery.reach(DeliveryStep.PINNED)
        return plan

    def run(self, parallel: int, rate: float | None) -> Caught:
        """Do all tasks that are left, some at a time, then `end`. Returns the counts of both.

        Raises ReindexUnverified, and what `end` raises.
        """
        if not self.plan.is_verified:
            left = [task.number for task in self.tasks if not task.is_done]
            parallel = 1 if self.is_in_order else max(1, min(parallel, len(left)))
            pool = ThreadPoolExecutor(parallel, thread_name_prefix="esker-reindex")
            begun: list[Future[Counts]] = []
            try:
                each_rate = rate / parallel if rate is not None else None
                begun += [pool.submit(self.run_task, number, each_rate) for number in left]
                wait(begun, return_when=FIRST_EXCEPTION)
                for task in begun:
                    if task.done():
                        task.result()
            except BaseException:
                # Before anybody waits for the others: with a rate, a task may take hours.
                pool.shutdown(wait=False, cancel_futures=True)
                while going := [task for task in begun if task.running()]:
                    self._delivery.engine.cancel()
                    wait(going, timeout=1)  # between two jobs of Spark there was nothing to stop
                raise
            finally:
                pool.shutdown(cancel_futures=True)
            self._verify()
        counts, caught = self.counts(), self.end()
        return replace(caught, counts=counts + caught.counts)

    def _verify(self) -> None:
        """See that all rows of the snapshot were sent, and that the index has them."""
        counts = self.counts()
        wanted, ids = self._rows_and_ids()
        told = f"The snapshot has {wanted} rows: {counts.sent} sent, {counts.unwanted} not wanted, "
        told += f"{counts.dead + counts.known} dead."
        name = self.plan.into or self._delivery.target.describe()
        # Of rows of one id in one task, only the newest is sent.
        if not ids <= counts.rows <= wanted:
            raise ReindexUnverified(self._own.name, name, wanted, counts.rows, told)
        # Where several rows are one document, nobody knows of how many documents no row was wanted.
        if isinstance(self.target, Index) and (ids == wanted or counts.sent == counts.rows):
            documents, found = min(counts.sent, ids), self.target.count()
            if found != documents:
                raise ReindexUnverified(self._own.name, name, documents, found, told)
        self._delivery.reach(DeliveryStep.VERIFIED)
        self.plan = self._delivery.go_into(self.plan)
        self._delivery.reach(DeliveryStep.MOVED)

    def _rows_and_ids(self) -> tuple[int, int]:
        """Return how many rows the snapshot has, and how many ids."""
        engine = self._delivery.engine
        with explained(f'cannot read table "{self._own.table}"', engine.log):
            rows = self._own.live(snapshot_frame(engine.spark, self._own.table.sql, self.plan.snapshot))
            if self._own.pipeline.is_keyed and not self._own.consumer.id:
                count = rows.count()
                return count, count
            ids = F.count_distinct(*(F.col(quoted(name)) for name in self._own.ids))
            found = rows.agg(F.count("*"), ids).first()
            assert found is not None
            return int(found[0]), int(found[1])

    def end(self) -> Caught:
        """Send what was published behind the snapshot, then let the alias lead to the new index.

        The offset says how far the new index is: whoever is stopped in here goes on, and does nothing twice
        that would do harm. Raises ReindexNeeded where changes behind the snapshot are missing: the reindex is
        given up then, and the alias stays. Raises what the target raises.
        """
        delivery, target = self._delivery, self._delivery.target
        caught = Caught()
        try:
            for _ in range(_LOOKS):
                delivery.look_again()
                steps = [Caught(changesets, counts) for _, _, changesets, counts in delivery.steps()]
                if not steps:
                    break
                caught = sum(steps, caught)
        except ReindexNeeded:
            self._let_go(is_done=False)
            raise
        old = [each for each in delivery.letters.waiting().letters.values() if each.event < self.plan.event]
        if self.plan.into is None:
            # It has what failed before, and is told now that it is gone, where it is.
            caught += Caught(counts=delivery.retry(old))
            old = [each for each in old if each.has_null]
        delivery.fence()
        if isinstance(target, Index) and self.plan.into is not None:
            target.switch(self.plan.into)
        delivery.reach(DeliveryStep.SWITCHED)
        offset = delivery.offset()
        delivery.tag_log(offset)
        delivery.made.enrichments.tag(delivery.tag, offset.inputs)
        delivery.letters.resolve([each.id for each in old], self.plan.event, self._state.now())
        self._let_go(is_done=True)
        return caught

    @classmethod
    def give_up(cls, delivery: Delivery) -> ReindexPlan:
        """End a reindex that is not done, and return what it was; its index is left as it is.

        Raises ReindexUnsuitable where none has begun, and where all rows have been sent: deliveries go to the
        new index by then.
        """
        name, plan = delivery.subscription.name, delivery.plan
        if plan is None:
            why, instead = "None has begun.", f"Begin one: esker reindex {name}"
            raise ReindexUnsuitable(name, why, instead)
        if plan.is_verified and unfinished(delivery) is not None:
            why = "All rows have been sent, and deliveries go where they went."
            instead = f"End it: esker deliver {name}\nOr begin anew: esker reindex {name} --anew"
            raise ReindexUnsuitable(name, why, instead)
        cls(delivery, plan)._let_go(is_done=False)
        return plan

    def _let_go(self, *, is_done: bool) -> None:
        """Keep nothing for it any more."""
        self._delivery.fence()
        self._delivery.untag_reindex()
        name = self._own.name
        forget_plan(self._state, self._project, name, self._lease, self.plan.id, is_done=is_done)
        self._delivery.look_at_offset()

    def _data_files(self) -> Sequence[FileEntry]:
        return self._attempt.files_at(self._snapshot).data

    def _send_task(self, task: Task, sending: Sending) -> Counts:
        delivery = self._delivery
        with ExitStack() as stack, explained(f'cannot read table "{self._own.table}"', delivery.engine.log):
            rows = stack.enter_context(self._files.frame(file.path for file in task.files))
            # One task, one connection to the target: whoever counts them means this.
            newest = delivery.target.keeps_versions
            rows = delivery.feed.placed(rows.coalesce(1), task.files, self.plan.offset, newest=newest)
            made = delivery.made.content(rows).coalesce(1)
            made = made if newest else in_order(made)
            return Carrier(delivery.engine, delivery.letters, sending).frame(made)

    @property
    def _lease(self) -> Lease:
        assert self._delivery.lease is not None, "who does a task of a reindex neither begins nor ends one"
        return self._delivery.lease

    @property
    def _tag(self) -> str:
        return self._delivery.reindex_tag

    @cached_property
    def _attempt(self) -> Attempt:
        return Attempt(self._delivery.engine, self._own.table)

    @cached_property
    def _files(self) -> SnapshotFiles:
        return SnapshotFiles(self._delivery.engine, self._own.table, self.plan.snapshot)

    @cached_property
    def _snapshot(self) -> Snapshot:
        found = self._attempt.snapshot(self.plan.snapshot)
        assert found is not None, "it is tagged"
        return found
