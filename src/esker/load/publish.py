"""Publish a staged batch: data, ledger and head in one compare-and-swap of the table.

A batch becomes visible here and nowhere else. A stop before the swap leaves files that nothing refers
to; a stop after it leaves a finished batch, which the next run finds in the ledger. Whatever the catalog
answers, also when it does not answer: the ledger is read again before anything is repeated or reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import SnapshotId, TableId
from esker.engine.session import Engine
from esker.errors import EskerError, Fenced, PublishConflict, PublishUnknown, SchemaMoved
from esker.ledger.entry import Head, LedgerEntry, Position, as_properties, read_entry, read_head
from esker.load.standing import check_descent

_TRIES = 30
_LONGEST_WAIT = 2.0


@dataclass(frozen=True)
class Published:
    """What a publish made."""

    snapshot: SnapshotId
    changeset: int
    entry: LedgerEntry


@dataclass
class Publisher:
    """Publishes the batches of one run of one pipeline.

    The first publish claims the pipeline with the next epoch. From then on another writer in the
    ledger means that this run has been overtaken: it ends, and never claims again.
    """

    engine: Engine
    table: TableId
    pipeline: str
    source: str
    run: str
    writer: str = field(default_factory=lambda: str(uuid4()))
    _epoch: int | None = None

    def publish(
        self,
        staged: StagedFiles,
        planned: LedgerEntry | None,
        position: Position,
        before_swap: Callable[[], None],
    ) -> Published:
        """Make a batch visible. `planned` is the entry that its slice was planned from.

        Raises Fenced, SchemaMoved, TableRewound, PublishConflict or PublishUnknown.
        """
        tried: list[LedgerEntry] = []
        failure: SwapFailed | None = None
        for attempts_left in reversed(range(_TRIES + 1)):
            if attempts_left < _TRIES:
                time.sleep(min(_LONGEST_WAIT, 0.02 * 2 ** (_TRIES - attempts_left)))
            try:
                attempt = Attempt(self.engine, self.table)
            except EskerError as error:
                if attempts_left:
                    continue
                if tried:
                    raise PublishUnknown(str(self.table), error.reason or error.message) from error
                raise
            entry = read_entry(attempt.properties, self.pipeline)
            for mine in tried:
                if mine == entry:
                    return self._claimed(mine)
            self._check_fence(attempt, entry, planned, tried)
            if not attempts_left:
                break  # the last round only looks whether the one before it landed
            if (attempt.uuid, attempt.schema_id) != (staged.table_uuid, staged.schema_id):
                raise SchemaMoved(str(self.table))
            check_descent(attempt, self.table)
            try:
                made = self._build(attempt, staged, entry, position)
                tried.append(made)
                before_swap()
                attempt.swap()
            except SwapFailed as error:
                # No kind of failure is special, a clean conflict included: only the ledger tells.
                failure = error
            else:
                return self._claimed(made)
        raise PublishConflict(str(self.table), _TRIES, str(failure))

    def _claimed(self, made: LedgerEntry) -> Published:
        self._epoch = made.epoch
        return Published(made.snapshot, made.changeset, made)

    def _build(
        self, attempt: Attempt, staged: StagedFiles, entry: LedgerEntry | None, position: Position
    ) -> LedgerEntry:
        head = read_head(attempt.properties)
        changeset = (head.changeset if head else 0) + 1
        snapshot, sequence = attempt.append(
            staged,
            {
                "esker.pipeline": self.pipeline,
                "esker.run": self.run,
                "esker.changeset": str(changeset),
            },
        )
        made = LedgerEntry(
            position=position,
            changeset=changeset,
            run=self.run,
            writer=self.writer,
            epoch=self._epoch if self._epoch is not None else (entry.epoch if entry else 0) + 1,
            snapshot=snapshot,
            sequence=sequence,
            project=self.engine.project.project,
            source=self.source,
        )
        attempt.set(as_properties(self.pipeline, made, Head(changeset, snapshot, sequence)))
        return made

    def _check_fence(
        self,
        attempt: Attempt,
        entry: LedgerEntry | None,
        planned: LedgerEntry | None,
        tried: list[LedgerEntry],
    ) -> None:
        """Raise Fenced unless the ledger is exactly the one that the batch was planned from."""
        overtaken = self._epoch is not None and (entry is None or entry.writer != self.writer)
        if entry == planned and not overtaken:
            return
        found = [attempt.landed(mine.snapshot, mine.sequence) for mine in tried]
        landed = "yes" if True in found else "unknown" if None in found else "no"
        raise Fenced(self.pipeline, str(self.table), entry.run if entry else "of somebody", landed)
