"""The part of the Python interface that needs neither Spark nor Java: reading tables and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from esker.engine.pins import PYSPARK
from esker.errors import ReaderNotInstalled, SparkNotInstalled
from esker.ledger.point import Point
from esker.ledger.state import State
from esker.pipeline.change_report import Changes
from esker.pipeline.families import recall_all
from esker.project import Project, load_project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from esker.changes.ranges import ChangeRange
    from esker.reading.lake import Lake
    from esker.reading.tasks import Access, ReindexTask


class ReadingProject:
    """A project whose tables can be read. Where PySpark is not installed, `esker.open` gives this one."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @classmethod
    def at(cls, folder: str | Path = ".", env: str | None = None) -> Self:
        """Open the project in a folder, or raise a ProjectError."""
        return cls(load_project(folder, env))

    @cached_property
    def state(self) -> State:
        """The state database."""
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
        from esker.changes.ranges import changes_of  # noqa: PLC0415

        catalog, name = self._named(table)
        return changes_of(lake, catalog, name, since, until, self._frame_of_changes)

    def read_changes(
        self, table: str, since: Point | None = None, until: Point | None = None, *, limit: int = 20
    ) -> Changes:
        """Return the first changes of a table after one point, up to another, and how many there are."""
        return Changes.of(self.changes(table, since, until), limit)

    def reindex_tasks(
        self,
        table: str,
        snapshot_id: int | None = None,
        *,
        with_deleted: bool = False,
        with_past: bool = False,
        size: int | None = None,
    ) -> tuple[ReindexTask, ...]:
        """Return tasks that together have each live row of a snapshot once; without one, of the newest.

        These are the rows that `esker reindex` sends: those that are marked as deleted, and in mode scd2
        versions of the past, are left out, unless asked for. `size` is how many bytes of data files a task
        has, about. Needs neither Spark nor Java. Raises TableNotFound, UnknownPoint and NotWithoutSpark.
        """
        lake = self._lake
        from esker.reading.tasks import TASK_SIZE, tasks_of  # noqa: PLC0415

        catalog, name = self._named(table)
        opened = lake.table(catalog, name) if snapshot_id is None else lake.pinned(catalog, name, snapshot_id)
        pipeline = self.project.pipeline_into(catalog, name)
        keeps = pipeline is not None and pipeline.keeps_deleted and not with_deleted
        mark = pipeline.deleted_column if keeps and pipeline is not None else None
        has_past = pipeline is not None and pipeline.mode == "scd2" and not with_past
        current = pipeline.versions.is_current if has_past and pipeline is not None else None
        return tasks_of(opened, snapshot_id, mark, current, size or TASK_SIZE, self._access)

    def reindex_task(self, task: ReindexTask | Mapping[str, Any]) -> ReindexTask:
        """Return a task that came from another process, pickled or as JSON, ready to be read here."""
        access = self._access
        from esker.reading.tasks import open_task  # noqa: PLC0415

        return open_task(task, access)

    @cached_property
    def _lake(self) -> Lake:
        try:
            import pyiceberg.io.pyarrow  # noqa: F401, PLC0415
        except ModuleNotFoundError as error:
            raise ReaderNotInstalled(error.name or "pyiceberg", "esker[read]") from error
        from esker.reading.lake import Lake  # noqa: PLC0415

        return Lake(self.project)

    @cached_property
    def _access(self) -> Access:
        lake = self._lake
        from esker.reading.tasks import Access  # noqa: PLC0415

        return Access(lake, self._frame_of_task)

    def _named(self, table: str) -> tuple[str, str]:
        self._recall_all()
        return self.project.find_table(table)

    def _recall_all(self) -> None:
        if self.project.families:  # else there may be no state database, and nobody needs one
            recall_all(self.project, self.state)

    def _frame_of_changes(self, changes: ChangeRange) -> DataFrame:
        raise SparkNotInstalled("to_spark", PYSPARK)

    def _frame_of_task(self, task: ReindexTask) -> DataFrame:
        raise SparkNotInstalled("to_spark", PYSPARK)

    if not TYPE_CHECKING:  # for mypy the class has the names above and no others

        def __getattr__(self, name: str) -> object:
            """Say of what a whole project can do that it needs Spark."""
            if type(self) is ReadingProject and not name.startswith("_"):
                raise SparkNotInstalled(f"project.{name}", PYSPARK)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
