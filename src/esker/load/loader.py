"""Load the slices of one run: read, stage, record, publish, and settle what is owed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from esker.errors import EskerError
from esker.events import Listener, Progressed, Reached, Step
from esker.ledger.entry import LedgerEntry
from esker.ledger.outbox import drain
from esker.load.batch import Batch, Loading
from esker.load.counts import RowCounts
from esker.load.publish import Change, Published, Publisher
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

    def load(
        self, piece: Slice, columns: tuple[Column, ...], sent: tuple[str, ...], planned: LedgerEntry | None
    ) -> Loaded:
        """Read, check, stage, record and publish one slice."""
        batch = Batch(
            id=f"{self.publisher.run}-{piece.id}",
            slice=piece.id,
            frame=lambda: self.source.read(piece, columns),
            arrow=self.source.arrow(piece),
            columns=columns,
            sent=sent,
            bytes=piece.bytes,
            progress=self._progress(piece.bytes),
        )
        self._reached(Step.READ, piece.summary)
        change = self.mode.stage(batch)
        try:
            self._reached(Step.STAGED)
            self.source.confirm(piece)
            self.source.record(piece, self.publisher.run)
            self._reached(Step.RECORDED)
            made = self.publisher.publish(
                change, planned, piece.end, before_swap=lambda: self._reached(Step.BEFORE_COMMIT)
            )
        finally:
            change.release()
        if isinstance(made, RowCounts):
            return Loaded(made, 0, None)
        self._reached(Step.AFTER_COMMIT, f"changeset {made.changeset}")
        return Loaded(made.counts, made.bytes, made, self.settle())

    def settle(self) -> str | None:
        """Append what is owed to the change log; return why that could not be done.

        A log that is down delays nothing but itself: the batch is published.
        """
        if self.publisher.log is None and self.publisher.quarantine is None:
            return None
        engine, table = self.loading.engine, self.loading.table
        try:
            self.publisher.logged |= drain(engine, table, before=lambda: self._reached(Step.BEFORE_LOG))
        except EskerError as error:
            return f"{error.message}: {error.reason}"
        self._reached(Step.LOGGED)
        return None

    def _reached(self, step: Step, detail: str = "") -> None:
        self.listen(Reached(self.loading.name, step, detail))

    def _progress(self, total: int) -> Callable[[int, int], None]:
        return lambda rows, size: self.listen(Progressed(self.loading.name, rows, size, total))
