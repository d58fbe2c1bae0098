"""Do one task of a reindex: in this process alone where it can, with Spark where it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.reindex_tasks import TaskWork
from esker.engine.pins import has_spark
from esker.errors import SparkNotInstalled
from esker.events import Listener, silent
from esker.ledger.state import State
from esker.pipeline.deliver import DeliveryResult, Start, opened, subscribed
from esker.project import Project

if TYPE_CHECKING:
    from esker.reading.lake import Lake


def run_task(
    project: Project,
    start: Start,
    state: State,
    name: str,
    number: int,
    listen: Listener = silent,
    *,
    rate: float | None = None,
    lake: Lake | None = None,
) -> DeliveryResult:
    """Do one task of a reindex that has begun. Others may do other tasks at the same time.

    `rate` is of this task alone: nobody knows how many are done elsewhere. With a `lake`, Spark starts only
    for what this process cannot do alone. Raises ReindexUnsuitable when none has begun, or others have to be
    done before it.
    """
    subscription, target = subscribed(project, name), opened(project, name)
    rate = rate or project.consumer(name).reindex.rate
    tasks: TaskWork
    why = "the task is done where Spark runs"
    if lake is not None:
        from esker.pipeline.in_process import NothingPublished, open_task_here  # noqa: PLC0415 (PyIceberg)

        try:
            tasks = open_task_here(lake, state, subscription, target, listen)
            return _done(tasks, number, rate, name, str(subscription.table))
        except NothingPublished:
            why = "nothing was published to its table"
        except NeedsSpark as needed:
            why = needed.why
    if not has_spark():
        raise SparkNotInstalled(f'consumer "{name}"', why)
    from esker.deliver.delivery import Delivery  # noqa: PLC0415 (PySpark)
    from esker.deliver.reindex import Reindex  # noqa: PLC0415
    from esker.ledger.dead_letters import DeadLetters  # noqa: PLC0415
    from esker.pipeline.tables import dead_letters_of  # noqa: PLC0415

    engine = start()
    engine.open_catalog(subscription.table.catalog)
    letters = DeadLetters(engine, dead_letters_of(project, subscription.table, name))
    tasks = Reindex.begun(Delivery(engine, state, subscription, target, letters, listen, None))
    return _done(tasks, number, rate, name, str(subscription.table))


def _done(tasks: TaskWork, number: int, rate: float | None, name: str, table: str) -> DeliveryResult:
    counts = tasks.run_task(number, rate)
    return DeliveryResult(name, "succeeded", table, until=tasks.plan.offset.changeset, rows=counts)
