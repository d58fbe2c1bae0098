"""Do a task of a reindex from this process alone: the rows of some files, one file after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from esker.deliver.in_process.delivery import DeliveryInProcess
from esker.deliver.in_process.needs_spark import NeedsSpark
from esker.deliver.in_process.view import View
from esker.deliver.ordered_rows import ordered
from esker.deliver.outcome import kept_outcome, parts
from esker.deliver.reindex_tasks import Task, TaskWork, not_begun
from esker.deliver.sending import OUTCOME, Counts, Sending
from esker.deliver.subscription import CHANGE
from esker.engine.iceberg.manifests import FileEntry, LiveFiles
from esker.reading.lake import Lake


class TaskInProcess(TaskWork):
    """The tasks of a reindex that has begun."""

    def __init__(self, delivery: DeliveryInProcess, lake: Lake, *, alone: bool) -> None:
        """Raises ReindexUnsuitable where none has begun that can go on."""
        super().__init__(delivery)
        self._alone = alone
        plan, own = delivery.plan, self._own
        self._view = View(lake.table(own.table.catalog, own.table.name))
        is_there = plan is not None and self._view.table.snapshot(plan.snapshot) is not None
        if plan is None or plan.offset.table != self._view.uuid or not is_there:
            raise not_begun(delivery)
        self.plan = plan

    @cached_property
    def _live(self) -> LiveFiles:
        return self._view.files_at(self._view.table.snapshot(self.plan.snapshot))

    def _data_files(self) -> Sequence[FileEntry]:
        return self._live.data

    def _send_task(self, task: Task, sending: Sending) -> Counts:
        limit = self._own.consumer.batch.spark
        if task.rows > limit and not self._alone:
            raise NeedsSpark(f"task {task.number} has {task.rows} rows, more than batch: {{spark: {limit}}}")
        newest = self._delivery.target.keeps_versions
        tables: Iterable[pa.Table]
        if self._is_one_row_each:
            # A file may be larger than this process.
            parts_of = (self._view.parts(self._live, file) for file in task.files)
            tables = (self._placed(rows, 0) for parts_ in parts_of for rows in parts_)
        else:
            tables = (self._placed(self._view.rows(self._live, [file]), file.sequence) for file in task.files)
        if not self._own.pipeline.is_keyed:
            # Rows of one id may be in several files: which is the newest, only all of them tell.
            tables = [pa.concat_tables(tables)]
        sent = (ordered(rows, self._own.ids, newest=newest) for rows in tables)
        batches = (batch for rows in sent for batch in parts(rows.to_batches()))
        return kept_outcome(self._delivery.letters, pa.Table.from_batches(sending.send(batches), OUTCOME))

    @property
    def _is_one_row_each(self) -> bool:
        """No other row has the id of one: they can be sent in any order."""
        own = self._own
        key = {name.lower() for name in own.pipeline.key}
        is_several = not own.pipeline.is_keyed or own.pipeline.mode == "delete_insert"
        return not is_several and {name.lower() for name in own.ids} == key

    def _placed(self, rows: pa.Table, sequence: int) -> pa.Table:
        """Return rows of a file with CHANGE, without those that are deleted, or of the past."""
        own = self._own
        if own.pipeline.mode == "scd2":
            rows = rows.filter(pc.fill_null(rows.column(own.pipeline.versions.is_current), False))
        elif own.pipeline.keeps_deleted and own.pipeline.deleted_column in rows.column_names:
            is_marked = pc.fill_null(rows.column(own.pipeline.deleted_column), False)
            rows = rows.filter(pc.invert(is_marked))
        shown = rows.select([name for name in rows.column_names if own.is_shown(name)])
        is_keyed = own.pipeline.is_keyed
        number = self.plan.offset.changeset if is_keyed else sequence
        change = [
            pa.array([number] * len(rows), pa.int64()),
            pa.array(["insert"] * len(rows), pa.string()),
            pa.array([0] * len(rows) if is_keyed else list(range(len(rows))), pa.int64()),
        ]
        return pa.table([*change, *shown.columns], names=[*CHANGE, *shown.column_names])
