"""The part of the Python interface that needs neither Spark nor Java: read and deliver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from esker.engine.pins import has_spark
from esker.errors import ReaderNotInstalled, ScanInvalid, SparkNotInstalled, TableNotFound
from esker.events import Listener, silent
from esker.ledger.point import Point
from esker.project import Project, load_project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from esker.changes.ranges import ChangeRange
    from esker.engine.session import Engine
    from esker.ledger.state import State
    from esker.pipeline.change_report import Changes
    from esker.pipeline.deliver import DeliveryReport, DeliveryResult
    from esker.pipeline.windows import WindowLine
    from esker.reading.lake import Lake
    from esker.reading.scan import TableScan
    from esker.reading.tasks import Access, ReindexTask


class ReadingProject:
    """A project whose tables can be read, and whose changes can be delivered.

    Where PySpark is not installed, `esker.open` gives this one.
    """

    hands_over = False
    """Another runner has Spark and delivers what needs it, such as large steps."""
    only_runs: Sequence[str] | None = None
    """The pipelines that this process runs, or all if none is named, before it ends; None if it may go on."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @classmethod
    def at(cls, folder: str | Path = ".", env: str | None = None) -> Self:
        """Open the project in a folder, or raise a ProjectError."""
        return cls(load_project(folder, env))

    @cached_property
    def state(self) -> State:
        """The state database."""
        from esker.ledger.state import State

        return State.open(self.project)

    def changes(
        self, table: str, since: Point | Mapping[str, Any] | None = None, until: Point | None = None
    ) -> ChangeRange:
        """Return what changed in a table after one point, up to and including another.

        A point is a changeset, a snapshot id or a time; without them it is all that is still there. Programs
        that follow a table keep the `position` of each range and give it as `since` of the next: then changes
        that do not continue what was read, after a restore, raise ChangesDiverged. Only
        files that the range wrote are opened, when rows are asked for: `to_arrow()`, `to_batches()`,
        `to_polars()`, `to_spark()`. What a killed run has not written to the change log yet is there, too.
        Needs neither Spark nor Java, except for `to_spark()`. Raises NoChangeLog, UnknownPoint,
        ChangesForgotten, ChangesMissing, ChangesDiverged and NotWithoutSpark.
        """
        lake = self._lake
        from esker.changes.ranges import changes_of

        catalog, name = self._named(table)
        return changes_of(lake, catalog, name, since, until, self._frame_of_changes)

    def read_changes(
        self, table: str, since: Point | None = None, until: Point | None = None, *, limit: int = 20
    ) -> Changes:
        """Return the first changes of a table after one point, up to another, and how many there are."""
        from esker.pipeline.change_report import Changes

        return Changes.of(self.changes(table, since, until), limit)

    def scan(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        time_column: str | None = None,
        start: datetime | date | str | None = None,
        end: datetime | date | str | None = None,
        snapshot_id: int | None = None,
    ) -> TableScan:
        """Return rows of a table, read in this process: `to_polars()`, `to_arrow()`, `to_batches()`.

        `where` is a filter as PyIceberg takes it: `status = 'open' AND amount >= 10`. With `time_column`,
        only rows whose time lies in [`start`, `end`), in UTC unless a time says otherwise. Only files that
        may hold such rows are opened. Rows that are marked as deleted are included. Needs neither Spark nor
        Java, except for `to_spark()`. Raises TableNotFound, UnknownPoint, ScanInvalid and NotWithoutSpark.
        """
        lake = self._lake
        from esker.reading.filter import TimeRange
        from esker.reading.scan import scan_of

        catalog, name = self._named(table)
        if time_column is None and (start is not None or end is not None):
            why = "`start` and `end` are of no column."
            raise ScanInvalid(name, why, 'Name it: time_column="modified_time"')
        times = None if time_column is None else TimeRange(time_column, start, end)
        opened = lake.table(catalog, name) if snapshot_id is None else lake.pinned(catalog, name, snapshot_id)
        return scan_of(opened, snapshot_id, columns, where, times, self._frame_of_scan)

    def reindex_tasks(
        self,
        table: str,
        snapshot_id: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        with_deleted: bool = False,
        with_past: bool = False,
        size: int | None = None,
    ) -> tuple[ReindexTask, ...]:
        """Return tasks that together have each live row of a snapshot once; without one, of the newest.

        These are the rows that `esker reindex` sends: those that are marked as deleted, and in mode scd2
        versions of the past, are left out, unless asked for. With `where`, only those that match a filter, as
        in `scan`; with `columns`, only these. `size` is how many bytes of data files a task has, about. Needs
        neither Spark nor Java. Raises TableNotFound, UnknownPoint, ScanInvalid and NotWithoutSpark.
        """
        lake = self._lake
        from esker.reading.tasks import TASK_SIZE, tasks_of

        catalog, name = self._named(table)
        opened = lake.table(catalog, name) if snapshot_id is None else lake.pinned(catalog, name, snapshot_id)
        pipeline = self.project.pipeline_into(catalog, name)
        keeps = pipeline is not None and pipeline.keeps_deleted and not with_deleted
        mark = pipeline.deleted_column if keeps and pipeline is not None else None
        has_past = pipeline is not None and pipeline.mode == "scd2" and not with_past
        current = pipeline.versions.is_current if has_past and pipeline is not None else None
        return tasks_of(
            opened,
            snapshot_id,
            mark,
            current,
            size or TASK_SIZE,
            self._access,
            columns=columns,
            where=where,
        )

    def reindex_task(self, task: ReindexTask | Mapping[str, Any]) -> ReindexTask:
        """Return a task that came from another process, pickled or as JSON, ready to be read here."""
        access = self._access
        from esker.reading.tasks import open_task

        return open_task(task, access)

    def deliver(
        self, consumer: str, listen: Listener = silent, *, retry_dead: bool = False
    ) -> DeliveryResult:
        """Send a consumer what has changed since it was told last. Raises the error of one that failed.

        With `retry_dead`, dead letters are sent first, each as its row is by now. Spark starts only for what
        this process cannot do alone: joins, SELECTs, steps of more than `batch: {spark: …}` changes, dead
        letters. Raises SparkNotInstalled where one of them needs PySpark, and it is not there.
        """
        self._recall_all()
        self.project.consumer(consumer)
        result = self._deliver(consumer, listen, retry_dead=retry_dead, ends=None)
        if result.error is not None:
            raise result.error
        return result

    def deliver_all(
        self,
        consumers: Sequence[str] = (),
        *,
        retry_dead: bool = False,
        ends: threading.Event | None = None,
        listen: Listener = silent,
    ) -> DeliveryReport:
        """Deliver to consumers, or to all, one after the other; errors are in the report.

        When `ends` is set, it stops behind the step that it is at.
        """
        from esker.pipeline.deliver import DeliveryReport

        self._recall_all()
        for name in consumers:
            self.project.consumer(name)
        results = []
        for name in consumers or self.project.consumers:
            if ends is None or not ends.is_set():
                results.append(self._deliver(name, listen, retry_dead=retry_dead, ends=ends))
        return DeliveryReport(results)

    def _deliver(
        self, consumer: str, listen: Listener, *, retry_dead: bool, ends: threading.Event | None
    ) -> DeliveryResult:
        from esker.pipeline.deliver import deliver

        return deliver(
            self.project,
            self._start,
            self.state,
            consumer,
            listen,
            retry_dead=retry_dead,
            ends=ends,
            lake=self._own_lake,
            hands_over=self.hands_over,
        )

    def run_reindex_task(
        self, consumer: str, number: int, listen: Listener = silent, *, rate: float | None = None
    ) -> DeliveryResult:
        """Do one task of a reindex that has begun; others may do other tasks at the same time.

        When all are done, `reindex` ends it. At most `rate` rows a second are sent, by this task alone. Spark
        starts only for what this process cannot do alone. Raises ReindexUnsuitable, SparkNotInstalled, and
        what the target raises.
        """
        from esker.pipeline.reindex_task import run_task

        self._recall_all()
        self.project.consumer(consumer)
        lake = self._own_lake
        return run_task(self.project, self._start, self.state, consumer, number, listen, rate=rate, lake=lake)

    def _start(self) -> Engine:
        return self._engine

    @cached_property
    def _engine(self) -> Engine:
        return self._started()

    def _started(self) -> Engine:
        from esker.engine.session import Engine
        from esker.pipeline.brief import is_brief

        ends_soon = self.only_runs is not None and is_brief(self.project, self.only_runs)
        return Engine.start(self.project, is_brief=ends_soon)

    @property
    def _is_started(self) -> bool:
        """Spark runs for this project already."""
        return "_engine" in self.__dict__

    @property
    def _own_lake(self) -> Lake | None:
        """What deliveries read with that do without Spark; None where Spark does them all."""
        if self._is_started:
            return None
        try:
            return self._lake
        except ReaderNotInstalled:
            if has_spark():
                return None
            raise

    def windows(self, pipeline: str) -> list[WindowLine]:
        """Return which windows of a pipeline's source are covered, missing, failed or held.

        Needs neither Spark nor Java. Raises NoWindows for a source that is not read by time, and
        NotWithoutSpark.
        """
        from esker.pipeline.windows import list_windows

        self._recall_all()
        self.project.check_name(pipeline)
        return list_windows(self.project, self.state, pipeline, self._properties)

    def _properties(self, catalog: str, table: str) -> Mapping[str, str] | None:
        from esker.engine.iceberg.document import Undecided
        from esker.engine.iceberg.table_id import TableId
        from esker.reading.documents import Documents

        with suppress(Undecided):  # then the reader says why, and has the words for it
            found = Documents(self.project).find(TableId(catalog, table))
            return found.properties if found is not None else None
        try:
            return self._lake.table(catalog, table).properties
        except TableNotFound:
            return None

    @cached_property
    def _lake(self) -> Lake:
        try:
            import pyiceberg.io.pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise ReaderNotInstalled(error.name or "pyiceberg", "esker[read]") from error
        from esker.reading.lake import Lake

        return Lake(self.project)

    @cached_property
    def _access(self) -> Access:
        lake = self._lake
        from esker.reading.tasks import Access

        return Access(lake, self._frame_of_task)

    def _named(self, table: str) -> tuple[str, str]:
        self._recall_all()
        return self.project.find_table(table)

    def _recall_all(self) -> None:
        if self.project.families:  # else there may be no state database, and nobody needs one
            from esker.pipeline.families import recall_all

            recall_all(self.project, self.state)

    def _frame_of_changes(self, changes: ChangeRange) -> DataFrame:
        raise SparkNotInstalled("to_spark")

    def _frame_of_scan(self, scan: TableScan) -> DataFrame:
        raise SparkNotInstalled("to_spark")

    def _frame_of_task(self, task: ReindexTask) -> DataFrame:
        raise SparkNotInstalled("to_spark")

    if not TYPE_CHECKING:  # for mypy the class has the names above and no others

        def __getattr__(self, name: str) -> object:
            """Say of what a whole project can do that it needs Spark."""
            if type(self) is ReadingProject and not name.startswith("_"):
                raise SparkNotInstalled(f"project.{name}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
