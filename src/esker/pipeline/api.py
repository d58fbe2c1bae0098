"""The project as Python programs use it: `esker.open(".")`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.engine.iceberg.table import TableId, find_table, named_table
from esker.engine.session import Engine
from esker.errors import BackfillUnsuitable, Held, NotWithoutSpark, ReaderNotInstalled
from esker.events import Listener, silent
from esker.ledger.holds import Hold
from esker.ledger.point import Point
from esker.pipeline.adoption import Adoption, apply_adoption, plan_adoption
from esker.pipeline.approval import approve, reject
from esker.pipeline.backfill import backfill
from esker.pipeline.change_report import Changes
from esker.pipeline.changes import read_changes
from esker.pipeline.deliver import DeliveryResult
from esker.pipeline.discovery import discover
from esker.pipeline.doctor import Finding, examine
from esker.pipeline.families import recall
from esker.pipeline.forget import ForgottenConsumer, forget_consumer
from esker.pipeline.fsck import Fsck, Repair, apply_repair, fsck, plan_repairs
from esker.pipeline.ids import read_row_ids
from esker.pipeline.infer import Inferred, infer_contract
from esker.pipeline.metadata import TableMetadata
from esker.pipeline.named import naming
from esker.pipeline.peek import Peeked, peek
from esker.pipeline.plan import (
    PipelinePlan,
    apply_changes,
    through_transform,
)
from esker.pipeline.quarantine import Choice, discard, replay, show_waiting
from esker.pipeline.read import read_source
from esker.pipeline.reconcile import Reconciliation, reconcile
from esker.pipeline.reindex import (
    GivenUpReindex,
    ReindexTasks,
    give_up,
    list_tasks,
    reindex,
    reindex_ids,
)
from esker.pipeline.result import RunResult
from esker.pipeline.run import run_pipeline
from esker.pipeline.running import RunningProject
from esker.pipeline.sql.run import Answer, Session
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.pipeline.windows import WindowLine, list_windows
from esker.sources import Span
from esker.sources.handed_over import HandedOver

if TYPE_CHECKING:
    from esker.changes.ranges import ChangeRange
    from esker.reading.scan import TableScan
    from esker.reading.tasks import ReindexTask


class OpenProject(RunningProject):
    """A project that can be run. Spark starts with the first thing that needs it."""

    @cached_property
    def engine(self) -> Engine:
        """Spark, set up for this project."""
        return self._started()

    def _start(self) -> Engine:
        return self.engine

    @property
    def _is_started(self) -> bool:
        return "engine" in self.__dict__

    def load(
        self,
        pipeline: str,
        data: DataFrame | pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]],
        listen: Listener = silent,
        *,
        approved: Held | None = None,
    ) -> RunResult:
        """Load rows through a pipeline in the place of its source's: contract, diff, publish and all.

        The pipeline's position stays where it is. Raises the error of a run that failed. Rows that were
        held are loaded when they are handed over again with that error as `approved`.
        """
        self._recall(pipeline)
        source = through_transform(self.engine, pipeline, HandedOver.of(self.engine, data))
        figures = {each.guard: each.rows for each in approved.tripped} if approved else {}
        with closing(source):
            result = run_pipeline(
                self.project, self._start, self.state, pipeline, listen, source, approved=figures
            )
        if result.error is not None:
            raise result.error
        return result

    def backfill(
        self,
        pipeline: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        ids: Sequence[str] = (),
        full: bool = False,
        replace_equal: bool = False,
        listen: Listener = silent,
    ) -> RunResult:
        """Load a range of a pipeline's source again, or some records; `full` compares all with the table.

        A stored row stays unless the source's is newer, or with `replace_equal` as new. The position stays
        where it is. Errors are in the result; raises BackfillUnsuitable.
        """
        is_range = since is not None or until is not None
        if [full, is_range, bool(ids)].count(True) != 1:
            raise BackfillUnsuitable(
                pipeline,
                "Either a range, ids or the whole must be named.",
                "Write --from and --to, --ids, or --full.",
            )
        self._find(pipeline)
        begin, end = _moment(pipeline, since), _moment(pipeline, until)
        span = Span(begin, end, tuple(dict.fromkeys(ids)), replace_equal)
        return backfill(self.project, self._start, self.state, pipeline, span, listen)

    def reconcile(
        self, pipeline: str, *, repair: bool = False, approved: int | None = None, listen: Listener = silent
    ) -> Reconciliation:
        """Compare keys and contents of all that a pipeline's source holds with its table.

        With `repair`, what is missing or differs is loaded, and what has vanished is deleted; Held is raised
        for more deletes than the guard allows, unless so many were `approved`. Raises ReconcileUnsuitable,
        PartsMissing, and the error of a run that failed.
        """
        self._find(pipeline)
        with naming(pipeline):
            return reconcile(
                self.project, self._start, self.state, pipeline, listen, repair=repair, approved=approved
            )

    def approve(self, pipeline: str, listen: Listener = silent) -> RunResult:
        """Let a held batch happen, as it was shown. Errors are in the result; raises NoHold."""
        self._recall(pipeline)
        return approve(self.project, self._start, self.state, pipeline, listen)

    def reject(self, pipeline: str) -> Hold:
        """Leave a held batch out and go on behind it. Raises NoHold or PipelineBusy."""
        self._recall(pipeline)
        return reject(self.project, self._start, self.state, pipeline)

    def show_quarantined(
        self, pipeline: str, choice: Choice | None = None, *, limit: int = 20
    ) -> list[Mapping[str, Any]]:
        """Return rows of a pipeline that wait in quarantine, newest first."""
        self._recall(pipeline)
        return show_waiting(self.engine, pipeline, choice or Choice(), limit)

    def replay(self, pipeline: str, choice: Choice | None = None, listen: Listener = silent) -> RunResult:
        """Check rows in quarantine with today's contract and load those that are good now.

        Errors are in the result; raises ReplayUnsuitable and NotInQuarantine.
        """
        self._recall(pipeline)
        return replay(self.project, self._start, self.state, pipeline, choice or Choice(), listen)

    def discard(self, pipeline: str, choice: Choice | None = None) -> int:
        """Leave rows in quarantine for good; return how many. Raises NotInQuarantine or PipelineBusy."""
        self._recall(pipeline)
        return discard(self.project, self._start, self.state, pipeline, choice or Choice())

    def apply(self, plans: Sequence[PipelinePlan]) -> None:
        """Make the table changes of plans; no rows are loaded. Raises the error of a plan that has one."""
        for plan in plans:
            apply_changes(self.engine, plan)

    def peek(self, pipeline: str, limit: int = 10) -> Peeked:
        """Return some rows of a pipeline's source; nothing is loaded."""
        self._find(pipeline)
        with naming(pipeline):
            return peek(self.engine, pipeline, limit)

    def read(self, pipeline: str, limit: int | None = None) -> pa.Table:
        """Return what a pipeline's source holds now, loaded or not, as Arrow; nothing is loaded.

        Raises BadRows for records that cannot be read, and PartsMissing when some could not be had.
        """
        self._find(pipeline)
        with naming(pipeline):
            return read_source(self.engine, pipeline, limit)

    def infer_contract(self, pipeline: str, file: str | None = None, *, overwrite: bool = False) -> Inferred:
        """Look at a pipeline's source and write a contract for it. Raises ContractExists or NoColumns."""
        self._find(pipeline)
        with naming(pipeline):
            return infer_contract(self.engine, pipeline, file, overwrite=overwrite)

    def windows(self, pipeline: str) -> list[WindowLine]:
        """Return which windows of a pipeline's source are covered, missing, failed or held.

        Raises NoWindows for a source that is not read by time.
        """
        self._recall(pipeline)
        try:
            return super().windows(pipeline)
        except (NotWithoutSpark, ReaderNotInstalled):
            return list_windows(self.project, self.state, pipeline, self._stored_properties)

    def _stored_properties(self, catalog: str, table: str) -> Mapping[str, str] | None:
        self.engine.open_catalog(catalog)
        stored = find_table(self.engine, TableId(catalog, table))
        return stored.properties if stored is not None else None

    def metadata(self, table: str) -> TableMetadata:
        """Return what is known of a table: columns, key, layout, contract, lineage and statistics.

        Raises TableNotFound for one that is neither there nor declared.
        """
        return TableMetadata.of(TablesBySpark(self.engine), self.table_id(table))

    def read_changes(
        self, table: str, since: Point | None = None, until: Point | None = None, *, limit: int = 20
    ) -> Changes:
        """Return the first changes of a table after one point, up to another, and how many there are."""
        try:
            return super().read_changes(table, since, until, limit=limit)
        except NotWithoutSpark:
            return read_changes(self.engine, self.table_id(table), since, until, limit)

    def reindex(
        self,
        consumer: str,
        *,
        into: str | None = None,
        parallel: int | None = None,
        rate: float | None = None,
        anew: bool = False,
        ids: Sequence[str] | Path | None = None,
        listen: Listener = silent,
    ) -> DeliveryResult:
        """Send a consumer all rows, and let deliveries go on behind them; or some, by their `ids`.

        A search index is filled anew, and the alias switched when it is whole. What was stopped goes on,
        unless it is begun `anew`. At most `rate` rows a second are sent. Errors are in the result; only
        ReindexUnsuitable is raised, for a file of ids, one a line, that has none or what can be none.
        """
        self._recall_all()
        self.project.consumer(consumer)
        if isinstance(ids, Path):
            ids = read_row_ids(self.project, consumer, ids)
        if ids is not None:
            return reindex_ids(self.project, self._start, self.state, consumer, ids, listen)
        return reindex(
            self.project,
            self._start,
            self.state,
            consumer,
            listen,
            into=into,
            parallel=parallel,
            rate=rate,
            anew=anew,
        )

    def reindex_plan(self, consumer: str, *, into: str | None = None, anew: bool = False) -> ReindexTasks:
        """Begin a reindex, unless one has begun, and return its tasks. Nothing is sent.

        Raises ConsumerBusy and ReindexUnsuitable.
        """
        self._recall_all()
        return list_tasks(self.project, self._start, self.state, consumer, into=into, anew=anew)

    def give_up_reindex(self, consumer: str) -> GivenUpReindex:
        """End a reindex that is not done: its plan and tags are removed, the index that it fills is left.

        Raises ConsumerBusy, and ReindexUnsuitable where none has begun or all rows have been sent.
        """
        self._recall_all()
        self.project.consumer(consumer)
        return give_up(self.project, self._start, self.state, consumer)

    def forget_consumer(self, consumer: str, tables: Sequence[str] = ()) -> ForgottenConsumer:
        """Let go of a consumer that the project no longer declares: its offset, and its tags.

        They are looked for on the tables of the project's pipelines and enrichments, and on those that are
        named. Dead letters stay. Raises ConsumerDeclared and ConsumerBusy.
        """
        self._recall_all()
        return forget_consumer(self.project, self._start, self.state, consumer, tables)

    def sql(self, text: str, listen: Listener = silent) -> Answer:
        """Run Spark SQL on the project's catalogs; return the answer of the last statement.

        INSERT, UPDATE, DELETE and MERGE on a pipeline's table go through its loader. Raises SqlInvalid,
        SqlRefused, and the errors of a run.
        """
        *_, last = self.sql_answers(text, listen)
        return last

    def sql_answers(self, text: str, listen: Listener = silent) -> Iterator[Answer]:
        """Run SQL statements, each when its answer is asked for; one that fails ends them."""
        for family in self.project.families.values():
            # Without them, their tables could be written to past their ledgers.
            if not recall(self.project, self.state, family):
                discover(self.project, self._start, self.state, family)
        return Session(self.engine, self.state, listen).answers(text)

    def adopt(self, table: str, *, files: str | None = None) -> Adoption:
        """Take an existing Iceberg table, or Parquet files, into the pipeline that names it.

        Rewrites no data file. Raises NotOfAPipeline, TableNotFound, AdoptionRefused and PipelineBusy.
        """
        found = self.plan_adoption(table, files=files)
        return found if found.is_done else self.apply_adoption(found)

    def plan_adoption(self, table: str, *, files: str | None = None) -> Adoption:
        """Return what adopting a table would do. Nothing is changed."""
        return plan_adoption(self.engine, self.table_id(table), files)

    def apply_adoption(self, adoption: Adoption) -> Adoption:
        """Do what a plan to adopt a table says."""
        return replace(adoption, snapshot_id=apply_adoption(self.engine, self.state, adoption))

    def table(self, table: str) -> DataFrame:
        """Return a table's rows as a Spark frame; `scan` reads them without Spark."""
        found = self.table_id(table)
        self.engine.open_catalog(found.catalog)
        return self.engine.spark.table(found.sql)

    def doctor(self) -> Iterator[Finding]:
        """Check everything that the project needs."""
        return examine(self.project)

    def fsck(self, tables: Sequence[str] = (), *, deep: bool = False) -> Fsck:
        """Look at tables for damage, or at all of the project, with the system tables beside them.

        Nothing is changed, and a table need not load. With `deep`, files are opened too.
        """
        self._recall_all()
        return fsck(self.engine, [self.table_id(table) for table in tables], deep=deep)

    def plan_repairs(self, found: Fsck) -> Iterator[Repair]:
        """Yield what would repair what was found. Nothing is changed. Raises NothingToRestore."""
        return plan_repairs(self.engine, found)

    def repair(self, found: Fsck, repair: Repair) -> None:
        """Do what a plan says; look again afterwards. Raises PipelineBusy and RepairOutdated."""
        apply_repair(self.engine, self.state, found, repair)

    def _frame_of_changes(self, changes: ChangeRange) -> DataFrame:
        from esker.pipeline.frames import frame_of_changes  # noqa: PLC0415

        return frame_of_changes(self.engine, self.table_id(changes.table), changes)

    def _frame_of_scan(self, scan: TableScan) -> DataFrame:
        from esker.pipeline.frames import frame_of_scan  # noqa: PLC0415

        return frame_of_scan(self.engine, scan)

    def _frame_of_task(self, task: ReindexTask) -> DataFrame:
        from esker.pipeline.frames import frame_of_task  # noqa: PLC0415

        return frame_of_task(self.engine, task)

    def _recall(self, name: str) -> None:
        """Make sure of a pipeline; a family's database is asked when nothing is known of its tables."""
        family = self.project.family_of(name)
        if family is not None and not recall(self.project, self.state, family) and name != family.name:
            discover(self.project, self._start, self.state, family)
        self.project.pipeline(name)

    def table_id(self, table: str) -> TableId:
        """Return a table by name: a pipeline's, or one whose first part names the catalog."""
        self._recall_all()
        return named_table(self.project, table)


def _moment(pipeline: str, given: datetime | str | None) -> datetime | None:
    """Return a moment that somebody wrote, in UTC unless it says otherwise."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        instead = "Write 2026-11-03 or 2026-11-03T14:00."
        raise BackfillUnsuitable(pipeline, f'"{given}" is no time.', instead) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
