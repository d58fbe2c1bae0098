"""Open deliveries that this process does alone, with PyIceberg and without Spark."""

from __future__ import annotations

from esker.deliver.in_process.delivery import DeliveryInProcess, check_possible
from esker.deliver.in_process.letters import LettersInProcess
from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.in_process.task import TaskInProcess
from esker.deliver.subscription import Subscription
from esker.deliver.targets.target import Target
from esker.engine.pins import has_spark
from esker.errors import CatalogUnreachable, NotWithoutSpark, StoreUnreachable, TableNotFound
from esker.events import Listener
from esker.ledger.entry import read_head
from esker.ledger.leases import Lease
from esker.ledger.state import State
from esker.pipeline.tables import dead_letters_of
from esker.reading.lake import Lake


class NothingPublished(Exception):
    """The table is not there yet, or no pipeline has published to it."""


def open_here(
    lake: Lake,
    state: State,
    subscription: Subscription,
    target: Target,
    listen: Listener,
    lease: Lease | None,
    *,
    alone: bool,
) -> DeliveryInProcess:
    """Open a delivery. Raises NothingPublished, and NeedsSpark, where it is not `alone` and Spark does it
    instead."""
    table = subscription.table
    check_possible(subscription)
    try:
        _check_published(lake, subscription)
        letters = LettersInProcess(lake, dead_letters_of(lake.project, table, subscription.name), table)
        return DeliveryInProcess(lake, state, subscription, target, letters, listen, lease, alone=alone)
    except (NotWithoutSpark, CatalogUnreachable, StoreUnreachable) as error:
        if alone:
            raise
        # Java may know a way that PyIceberg does not; where neither does, Spark says why.
        raise NeedsSpark(error.message) from error


def open_task_here(
    lake: Lake, state: State, subscription: Subscription, target: Target, listen: Listener
) -> TaskInProcess:
    """Open the tasks of a reindex that has begun. Raises NeedsSpark, and ReindexUnsuitable for none."""
    alone = not has_spark()
    delivery = open_here(lake, state, subscription, target, listen, None, alone=alone)
    return TaskInProcess(delivery, lake, alone=alone)


def _check_published(lake: Lake, subscription: Subscription) -> None:
    table = subscription.table
    try:
        found = lake.table(table.catalog, table.name)
    except TableNotFound:
        raise NothingPublished from None
    if subscription.pipeline.is_keyed and read_head(found.properties) is None:
        raise NothingPublished
