"""Load the slices of one run: read, stage, record, publish, and settle what is owed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from pyspark.sql import DataFrame

from esker.contracts.evolution import Added, Differences, with_changes
from esker.engine.iceberg.stage import StagedFiles
from esker.errors import EskerError, Held, LogAhead, LogGap, SideTableForeign
from esker.events import Listener, Progressed, Reached, Step
from esker.ledger.delete_memory import DeleteMemory
from esker.ledger.entry import LedgerEntry
from esker.ledger.outbox import drain
from esker.ledger.quality import Quality
from esker.ledger.retention import Retained, trim
from esker.ledger.side_table import DELETES, QUALITY
from esker.ledger.upkeep import MANY_FILES
from esker.load.audits import AuditedChange, Audits
from esker.load.batch import Batch, Loading
from esker.load.counts import RowCounts
from esker.load.guards import Approved, Guards
from esker.load.publish import Change, Published, Publisher
from esker.load.unknown import with_unknown
from esker.project.types import Column
from esker.sources import Reader, Slice


class Mode(Protocol):
    """What happens to the rows of a batch."""

    def stage(self, batch: Batch) -> Change:
        """Check and prepare the rows. Nothing is visible afterwards."""


@dataclass(frozen=True)
class Loaded:
    """What became of a slice. Nothing was published for one without changes."""

    counts: RowCounts
    bytes: int
    published: Published | None
    owed: str | None = None
    """Why the change log lags behind, if it does."""


@dataclass(frozen=True)
class Loader:
    """Loads slices of one pipeline."""

    loading: Loading
    mode: Mode
    source: Reader
    publisher: Publisher
    listen: Listener
    guards: Guards
    audits: Audits

    def load(
        self,
        piece: Slice,
        columns: tuple[Column, ...],
        sent: tuple[str, ...],
        planned: LedgerEntry | None,
        approved: Approved,
        unknown: Added = (),
    ) -> Loaded:
        """Read, check, stage, record and publish one slice. Raises Held for what nobody has `approved`.

        Rows that carry `unknown` columns go to the quarantine.
        """
        read = with_changes(columns, Differences(unknown, (), ()))
        paths = [(*path, column.name) for path, column in unknown]

        def frame() -> DataFrame:
            rows = self.source.read(piece, read)
            return with_unknown(rows, paths) if paths else rows

        batch = Batch(
            id=f"{self.publisher.run}-{piece.id}",
            slice=piece.id,
            frame=frame,
            arrow=None if paths else self.source.arrow(piece, columns),
            columns=columns,
            sent=sent,
            bytes=piece.bytes,
            weight=self.source.weight(piece),
            progress=self._progress(piece.bytes),
            until=piece.until,
            guards=self._guards(piece, approved),
            command=piece.command,
            is_repair=piece.is_repair,
            has_unknown=bool(paths),
        )
        self._reached(Step.READ, piece.summary)
        try:
            return self._load(batch, piece, planned, approved)
        finally:
            self.loading.kept.let_go()

    def _load(self, batch: Batch, piece: Slice, planned: LedgerEntry | None, approved: Approved) -> Loaded:
        try:
            change = self.mode.stage(batch)
        except Held:
            # If a person rejects it, the position moves past the slice: what it was must be known then.
            self.source.record(piece, self.publisher.run)
            raise
        except EskerError:
            # If the source changed under the slice, that is what happened; all else follows from it.
            self.source.confirm(piece)
            raise
        if self.audits.is_needed:
            change = AuditedChange(
                change, self.audits, self.loading.name, self.publisher.run, approved, self.publisher.note
            )
        try:
            self._reached(Step.STAGED)
            self.source.confirm(piece)
            self.source.record(piece, self.publisher.run)
            self._reached(Step.RECORDED)
            made = self.publisher.publish(
                change, planned, piece.end, before_swap=lambda: self._before_swap(change, piece)
            )
        finally:
            change.release()
        if isinstance(made, RowCounts):
            return Loaded(made, 0, None)
        self._reached(Step.AFTER_COMMIT, f"changeset {made.changeset}")
        owed = self.settle(
            made.properties, {(name, made.changeset): files for name, files in made.staged.items()}
        )
        if owed is None and self.publisher.sides:
            self._reached(Step.LOGGED)
        return Loaded(made.counts, made.bytes, made, owed)

    def _before_swap(self, change: Change, piece: Slice) -> None:
        if change.reads_again:
            # Bad rows were read once more than the others: the source must still be what it was.
            self.source.confirm(piece)
        self._reached(Step.BEFORE_COMMIT)

    def settle(
        self, properties: Mapping[str, str], ready: Mapping[tuple[str, int], StagedFiles] | None = None
    ) -> str | None:
        """Append what a table's outbox holds to the change log; return why that could not be done.

        A log that is down delays nothing but itself: the batch is published.
        """
        try:
            self.publisher.logged |= drain(
                self.loading.engine,
                self.loading.table,
                properties,
                ready=ready,
                before=lambda: self._reached(Step.BEFORE_LOG),
            )
        except (LogAhead, SideTableForeign, LogGap):
            raise
        except EskerError as error:
            return f"{error.message}: {error.reason}"
        return None

    def put_together(self, now: datetime) -> None:
        """Put the files of tables beside the table together, if this run added to them and they are many."""
        side, memory = self.publisher.sides.get(DELETES), self.loading.memory
        if side is not None and memory is not None:
            DeleteMemory.put_together(self.loading.engine, side, now, memory.longest)
        history = self.publisher.sides.get(QUALITY)
        if history is not None and self.publisher.figures >= MANY_FILES:
            Quality.put_together(self.loading.engine, history)

    def forget(self, now: datetime) -> str | None:
        """Take old changes out of the change log, once a day; return why that could not be done."""
        log, declared = self.loading.log, self.loading.pipeline.changes
        if log is None or declared is None or not Retained.of(log.opened).is_due(now):
            return None
        try:
            trim(self.loading.engine, log.side.id, declared.keep, now)
        except EskerError as error:
            return f"{error.message}: {error.reason}"
        return None

    def _guards(self, piece: Slice, approved: Approved) -> Guards:
        is_off = piece.command is not None or self.loading.resolved is not None
        return replace(self.guards, approved=approved, pieces=piece.pieces, is_off=is_off)

    def _reached(self, step: Step, detail: str = "") -> None:
        self.listen(Reached(self.loading.name, step, detail))

    def _progress(self, total: int) -> Callable[[int, int], None]:
        return lambda rows, size: self.listen(Progressed(self.loading.name, rows, size, total))
