"""Append: every row of a slice is added, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.events import Listener, Progressed, Reached, Step
from esker.ledger.entry import LedgerEntry
from esker.load.batch import stage_batch
from esker.load.publish import Published, Publisher
from esker.project.types import Column
from esker.sources import Reader, Slice


@dataclass(frozen=True)
class Appended:
    """What an append did. Nothing was published for a slice without rows."""

    rows: int
    bytes: int
    published: Published | None


@dataclass(frozen=True)
class Append:
    """Loads slices of one pipeline by adding their rows."""

    engine: Engine
    pipeline: str
    table: TableId
    source: Reader
    publisher: Publisher
    listen: Listener

    def load(self, piece: Slice, columns: tuple[Column, ...], planned: LedgerEntry | None) -> Appended:
        """Read, check, stage, record and publish one slice."""
        frame = self.source.read(piece, columns)
        self._reached(Step.READ, piece.summary)
        batch = stage_batch(
            self.engine,
            self.table,
            frame,
            columns,
            pipeline=self.pipeline,
            batch=f"{self.publisher.run}-{piece.id}",
            source_bytes=piece.bytes,
            progress=self._progress(piece.bytes),
        )
        self._reached(Step.STAGED, f"{batch.rows_read} rows")
        self.source.confirm(piece)
        self.source.record(piece, self.publisher.run)
        self._reached(Step.RECORDED)
        if batch.rows_read == 0:
            return Appended(0, 0, None)
        published = self.publisher.publish(
            batch.files, planned, piece.end, before_swap=lambda: self._reached(Step.BEFORE_COMMIT)
        )
        self._reached(Step.AFTER_COMMIT, f"changeset {published.changeset}")
        return Appended(batch.rows_read, batch.files.bytes, published)

    def _reached(self, step: Step, detail: str = "") -> None:
        self.listen(Reached(self.pipeline, step, detail))

    def _progress(self, total: int) -> Callable[[int, int], None]:
        return lambda rows, size: self.listen(Progressed(self.pipeline, rows, size, total))
