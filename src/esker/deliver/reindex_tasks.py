"""Do the tasks of a reindex, wherever: each sends the rows of some files of the pinned snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from esker.deliver.sending import Counts, Sending
from esker.deliver.stepwise import StepwiseDelivery
from esker.deliver.targets.target import Target
from esker.engine.iceberg.manifests import FileEntry
from esker.errors import ReindexUnsuitable, StateError, TaskOutlived
from esker.events import DeliveryStep
from esker.ledger.reindexes import ReindexPlan, done_tasks, record_task


@dataclass(frozen=True)
class Task:
    """A part of a snapshot: some of its files."""

    number: int
    files: tuple[FileEntry, ...]
    is_done: bool

    @property
    def rows(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.number,
            "files": len(self.files),
            "rows": self.rows,
            "bytes": self.bytes,
            "done": self.is_done,
        }


def not_begun(delivery: StepwiseDelivery) -> ReindexUnsuitable:
    """Return the error of a reindex whose task is to be done, and that has not begun."""
    name, why = delivery.subscription.name, "None has begun, so that there are no tasks."
    instead = f"Begin one: esker reindex {name} --list-tasks"
    if delivery.state.is_file:
        why += " The state database is a file: what has begun on another machine is not in it."
        instead += "\nFor tasks on several machines, let all of them use one state database: "
        instead += "state: {url: postgresql://…}"
    return ReindexUnsuitable(name, why, instead)


class TaskWork(ABC):
    """The tasks of a reindex that has begun. Who reads their rows is left to those who build on it."""

    plan: ReindexPlan

    def __init__(self, delivery: StepwiseDelivery) -> None:
        self._delivery, self._own = delivery, delivery.subscription
        self._state, self._project = delivery.state, delivery.project.state_key

    @abstractmethod
    def _data_files(self) -> Sequence[FileEntry]:
        """Return the data files of the pinned snapshot."""

    @abstractmethod
    def _send_task(self, task: Task, sending: Sending) -> Counts:
        """Send the rows of a task. Raises what the target raises."""

    @cached_property
    def tasks(self) -> list[Task]:
        """All tasks; the same in every process."""
        done = self.done()
        files = sorted(self._data_files(), key=lambda file: (file.sequence, file.path))
        groups: list[list[FileEntry]] = []
        here = 0
        for file in files:
            if not groups or here + file.records > self.plan.rows_per_task:
                groups.append([])
                here = 0
            groups[-1].append(file)
            here += file.records
        return [Task(number, tuple(group), number in done) for number, group in enumerate(groups)]

    def run_task(self, number: int, rate: float | None = None) -> Counts:
        """Send the rows of one task. Raises ReindexUnsuitable for a number that there is not."""
        if self.plan.is_verified:
            # Where deletes have come since, rows of the snapshot would come back.
            why, instead = "All its tasks are done.", f"End it: esker reindex {self._own.name}"
            raise ReindexUnsuitable(self._own.name, why, instead)
        if number not in range(len(self.tasks)):
            last = len(self.tasks) - 1
            raise ReindexUnsuitable(
                self._own.name, f"There is no task {number}.", f"Tasks are numbered from 0 to {last}."
            )
        delivery, task = self._delivery, self.tasks[number]
        self._fence_task()
        if self.is_in_order and (left := set(range(number)) - set(self.done())):
            why = (
                f"Rows of one id may be in several tasks, and have to come in order: {min(left)} is not done."
            )
            instead = f"Do the tasks one after the other, or all of them: esker reindex {self._own.name}"
            raise ReindexUnsuitable(self._own.name, why, instead)
        sending = delivery.sending(
            target=self.target,
            event=self.plan.event,
            fills=self.plan.into is not None,
            retries=True,
            renews=True,
            rate=rate,
            fence=self._fence_task,
        )
        counts = self._send_task(task, sending)
        delivery.reach(DeliveryStep.TASK_SENT, str(number))
        record_task(self._state, self._project, self._own.name, self.plan.id, number, asdict(counts))
        delivery.reach(DeliveryStep.TASK_DONE, str(number))
        return counts

    def _fence_task(self) -> None:
        """Raise TaskOutlived when the reindex goes on without this task, or has ended: what comes of its
        snapshot is old by then.

        Whoever does a task elsewhere has no lease to lose, and its orchestrator may have lost sight of it.
        """
        self._delivery.fence()
        try:
            plan = self._delivery.plan
        except StateError:
            return  # it does not answer now, and says nothing of the reindex
        if plan is None or plan.id != self.plan.id or plan.is_verified:
            raise TaskOutlived(self._own.name)

    @property
    def is_in_order(self) -> bool:
        """Rows of one id come one after the other."""
        return not self._own.pipeline.is_keyed and not self._delivery.target.keeps_versions

    def counts(self) -> Counts:
        """Return the counts of all tasks that are done."""
        return sum((Counts(**each) for each in self.done().values()), Counts())

    def done(self) -> dict[int, dict[str, int]]:
        """Return the counts of each task that is done, by its number."""
        return done_tasks(self._state, self._project, self._own.name, self.plan.id)

    @property
    def target(self) -> Target:
        """Where the rows go."""
        return self._delivery.target_of(self.plan)
