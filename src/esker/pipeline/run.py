"""Run a pipeline with Spark: plan, and load slice by slice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from esker.engine.cleanup import cleaning_up
from esker.engine.session import Engine
from esker.errors import (
    ChangeNotApplied,
    EskerError,
    Held,
    NoHold,
    PartsMissing,
    SchemaMoved,
    StateError,
    TableMoved,
    Tripped,
)
from esker.events import Listener, Reached, Step, silent
from esker.ledger.checked import remember_checked
from esker.ledger.entry import LedgerEntry
from esker.ledger.holds import Hold, hold, release
from esker.ledger.outbox import lag
from esker.ledger.quarantine import REPLAYED, resolutions
from esker.ledger.remembered import remember
from esker.ledger.runs import batch_sizes
from esker.ledger.side_table import LOG
from esker.ledger.state import State
from esker.load.guards import Approved
from esker.load.loader import Loaded, Loader
from esker.load.publish import Publisher
from esker.pipeline.declared import digest_of
from esker.pipeline.loading import open_loader
from esker.pipeline.plan import (
    NO_ROWS,
    NOTHING_NEW,
    PipelinePlan,
    apply_changes,
    open_reader,
    plan_pipeline,
)
from esker.pipeline.planned import described
from esker.pipeline.recorded import Start, recorded
from esker.pipeline.result import RunResult
from esker.pipeline.tables import table_of
from esker.project import Project
from esker.project.modes import WHOLE
from esker.project.sources import FilesSource
from esker.sources import Reader, Slice, Span
from esker.sources.quarantined import QuarantinedRows

__all__ = ["SparkRun", "Start", "check_hold", "run_pipeline"]

_REPLANS = 3
_STILL_WAITING = "The rows wait on in the quarantine. Change the audit in the contract, or discard them."
_HAND_OVER_AGAIN = "If the rows are right, hand them over again with this error: load(…, approved=error)."


def run_pipeline(
    project: Project,
    start: Start,
    state: State,
    name: str,
    listen: Listener = silent,
    handed_over: Reader | None = None,
    *,
    span: Span | None = None,
    approved: Approved | None = None,
    decided: Hold | None = None,
) -> RunResult:
    """Run one pipeline with Spark. Errors are in the result; only an interruption is raised.

    With `handed_over`, its rows are loaded in the place of the source's. Its first batch trips no guard
    with figures that a person has `approved`, or has seen in a hold that is `decided`. With `span`, that
    part of the source is loaded again.
    """

    def begin(result: RunResult) -> SparkRun:
        return SparkRun(start, state, listen, result, handed_over, span, approved or {}, decided)

    return recorded(project, state, name, listen, begin)


@dataclass
class SparkRun:
    """One run under way with Spark. Its result says at any moment what has been published so far."""

    start: Start
    state: State
    listen: Listener
    result: RunResult
    handed_over: Reader | None = None
    span: Span | None = None
    approved: Approved = field(default_factory=dict)
    decided: Hold | None = None
    _engine: Engine | None = None
    _has_begun: bool = False

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = self.start()
        return self._engine

    def cancel(self) -> None:
        """Stop the run's Spark jobs; there are none before Spark has started."""
        if self._engine is not None:
            self._engine.cancel()

    def load(self) -> None:
        """Plan and load, step by step. Raises PartsMissing for what could not be had, when all else is in."""
        name = self.result.pipeline
        source = self.handed_over or open_reader(self.engine, name, state=self.state, span=self.span)
        pipeline = self.engine.project.pipeline(name)
        table = table_of(self.engine.project, pipeline)
        publisher = Publisher(self.engine, table, name, pipeline.source.fingerprint, self.result.run_id)
        failures: list[EskerError] = []
        with cleaning_up(source.close):
            while True:
                plan = self._load_step(source, publisher)
                failures += plan.failures
                if not plan.has_more:
                    break
        if self.result.rows.read:
            # Steps of a run may find nothing where others do.
            told = tuple(note for note in self.result.notes if note not in (NOTHING_NEW, NO_ROWS))
            self._add(notes=told)
        if failures:
            raise PartsMissing(name, failures)
        if self._is_normal and isinstance(pipeline.source, FilesSource):
            project = self.engine.project
            # All is loaded: a history that cannot be written costs the next run a start of Spark.
            with suppress(StateError):
                digest = digest_of(project, name, plan.columns)
                remember_checked(self.state, project.state_key, name, "declaration", digest)

    def _load_step(self, source: Reader, publisher: Publisher) -> PipelinePlan:
        """Plan and load; a table whose columns changed meanwhile is planned for again."""
        name = self.result.pipeline
        for attempts_left in reversed(range(_REPLANS)):
            plan = plan_pipeline(self.engine, self.state, name, source)
            if self.decided is not None:
                check_hold(self.state, self.engine.project, self.decided, plan.entry)
                self.approved = {each.guard: each.rows for each in self.decided.tripped}
            self.listen(Reached(name, Step.PLANNED, described(plan)))
            if waiting := [str(change) for change in plan.changes if change.needs_apply]:
                raise ChangeNotApplied(name, waiting)
            apply_changes(self.engine, plan)
            try:
                self._load_slices(plan, source, publisher)
            except (SchemaMoved, TableMoved):
                if not attempts_left:
                    raise
            else:
                return plan
        raise AssertionError  # the last attempt returns or raises

    def _load_slices(self, plan: PipelinePlan, source: Reader, publisher: Publisher) -> None:
        entry = plan.entry
        position = plan.slices[0].start if plan.slices else (entry.position if entry else None)
        notes = plan.notes if self.span is None else self._loaded_again(plan)
        if not self._has_begun:
            self._has_begun = True
            self._add(position={"from": position, "to": position})
        self._note(notes)
        if entry is not None:
            self._add(snapshot_id=entry.snapshot, changeset=entry.changeset)
        if not plan.columns:
            return  # there is no table yet, and nothing to load into one
        resolved = None
        if isinstance(source, QuarantinedRows) and plan.slices:
            resolved = resolutions(source.rows, REPLAYED)
        loader = open_loader(
            self.engine,
            plan.pipeline,
            plan.columns,
            source,
            publisher,
            self.listen,
            self._sizes,
            self.span,
            resolved,
        )
        loader.settle(plan.properties)
        if plan.slices:
            publisher.check_sides(plan.properties)
        for piece in plan.slices:
            loaded = self._load_or_hold(loader, plan, piece, entry)
            self._note((*publisher.noticed, *loader.audits.warned))
            if loaded.published is not None:
                entry = loaded.published.entry
                self._add(snapshot_id=entry.snapshot, changeset=entry.changeset)
                source.published(piece)
            self._add(
                rows=self.result.rows + loaded.counts,
                position={**self.result.position, "to": piece.end},
                bytes_written=self.result.bytes_written + loaded.bytes,
                batches=self.result.batches + (loaded.published is not None),
                pieces=self.result.pieces + (piece.pieces if self._is_normal else 0),
            )
            if loaded.owed is not None:
                assert loaded.published is not None
                waiting = lag(loaded.published.properties, publisher.logged.get(LOG, 0))
                self._add(log_lag=waiting, notes=(*self.result.notes, loaded.owed))
            if loaded.published is None and entry is not None and piece.end is not None:
                remember(self.state, self.engine.project.state_key, plan.pipeline, entry, piece.end)
            source.settled(piece)

        if self.result.batches:
            self.engine.has_loaded()
            now = datetime.now(UTC)
            loader.put_together(now)
            if failed := loader.forget(now):
                self._add(notes=(*self.result.notes, failed))

    def _load_or_hold(
        self, loader: Loader, plan: PipelinePlan, piece: Slice, entry: LedgerEntry | None
    ) -> Loaded:
        """Load a slice. One that trips a guard is written down, for a person to decide."""
        project = self.engine.project.state_key
        try:
            loaded = loader.load(piece, plan.columns, plan.sent, entry, self.approved, plan.unknown)
        except Held as error:
            if self.handed_over is not None:
                # Nothing to write down: whoever handed the rows over has them, `esker approve` would not.
                is_replay = isinstance(self.handed_over, QuarantinedRows)
                error.remedy = _STILL_WAITING if is_replay else _HAND_OVER_AGAIN
                raise
            hold(
                self.state,
                project,
                plan.pipeline,
                run_id=self.result.run_id,
                entry=entry,
                position=piece.end,
                # With what was approved before: who decides about this need not decide about that again.
                tripped=[*error.tripped, *self._approved_before(error)],
                message=error.message,
                span=self.span.as_json() if self.span else None,
            )
            raise
        if self._is_normal or (self.span is not None and self.approved):
            # Also when there was nothing to publish: the source has recovered.
            release(self.state, project, plan.pipeline, backfill=self.span is not None)
        if self.span is None:
            # What was approved is the first batch: those behind it have been seen by nobody. A backfill
            # begins anew each time, and meets what was shown wherever it lies.
            self.approved, self.decided = {}, None
        return loaded

    def _approved_before(self, error: Held) -> list[Tripped]:
        known = {each.guard for each in error.tripped}
        return [
            Tripped(guard, rows, rows, "approved already")
            for guard, rows in self.approved.items()
            if guard not in known
        ]

    @property
    def _is_normal(self) -> bool:
        """Rows come from what is new in the source."""
        return self.handed_over is None and self.span is None

    def _loaded_again(self, plan: PipelinePlan) -> tuple[str, ...]:
        """Return what people should know of a backfill: which part of the source it was."""
        read = tuple(piece.summary for piece in plan.slices) or (f"no file to load again: {self.span}",)
        return (*(note for note in plan.notes if plan.slices), *read)

    def _sizes(self) -> Sequence[int]:
        """Return what is usual. Whoever hands rows over, or loads some again, knows how many it means."""
        if not self._is_normal:
            return ()
        project, name = self.engine.project, self.result.pipeline
        whole = project.pipeline(name).mode in WHOLE
        return batch_sizes(self.state, project.state_key, name, whole=whole)

    def _note(self, notes: Sequence[str]) -> None:
        """Add what the result does not say yet."""
        news = (note for note in notes if note not in self.result.notes)
        self._add(notes=(*self.result.notes, *news))

    def _add(self, **facts: Any) -> None:
        self.result = replace(self.result, **facts)


def check_hold(state: State, project: Project, waiting: Hold, entry: LedgerEntry | None) -> None:
    """Raise NoHold when the pipeline went on since a batch was held: what comes now nobody has seen.

    A backfill begins anew each time, wherever the pipeline stands.
    """
    if waiting.span is None and not waiting.is_of(entry):
        release(state, project.state_key, waiting.pipeline, backfill=False)
        raise NoHold(
            waiting.pipeline, "Something was published since the batch was held; it counts no longer."
        )
