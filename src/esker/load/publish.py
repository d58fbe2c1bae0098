"""Publish a batch: data, ledger, head and outbox in one compare-and-swap of the table.

A batch becomes visible here and nowhere else. A stop before the swap leaves files that nothing refers
to; a stop after it leaves a finished batch, which the next run finds in the ledger. Whatever the catalog
answers, also when it does not answer: the ledger is read again before anything is repeated or reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.rounds import rounds
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import EskerError, Fenced, PublishConflict, PublishUnknown, SchemaMoved, SideTableForeign
from esker.ledger.entry import Head, LedgerEntry, Position, as_properties, read_entry, read_head
from esker.ledger.foreign import foreign, foreign_property
from esker.ledger.outbox import OutboxEntry, check_room, outbox_property, read_outbox
from esker.ledger.quality import Measure, Quality
from esker.ledger.side_table import LOG, QUALITY, Files, SideTable, Stamp
from esker.load.counts import RowCounts
from esker.load.standing import check_descent, foreign_note
from esker.project.reserved import HASH_COLUMN

_TRIES = 30
_DAY = timedelta(days=1)
_SAME = 5
"""So often building a change on one and the same metadata may fail."""


Commit = Callable[[Attempt, Mapping[str, str]], tuple[SnapshotId, int]]
"""Builds the commit of a batch on an attempt, with a summary; returns its snapshot and sequence number."""


def staging_branch(pipeline: str) -> str:
    """Return the branch on which batches of a pipeline are looked at before they are published."""
    # A dot would make two names of it in SQL.
    return f"esker_staged_{pipeline.replace('.', '__')}"


@dataclass(frozen=True)
class Made:
    """A batch as it was made ready for one attempt: files, and how they enter the table."""

    commit: Commit
    counts: RowCounts
    bytes: int
    owed: Mapping[str, Files] = field(default_factory=dict)
    """Staged files for side tables, by the property that names each."""
    staged: Mapping[str, StagedFiles] = field(default_factory=dict)
    """The same files, for whoever appends them in this process."""
    is_change: bool = True
    """False for a batch that only moves the position: it gets no changeset number."""
    told: Mapping[str, str] = field(default_factory=dict)
    """What the snapshot's summary tells of it, beside pipeline, run and changeset."""
    measures: tuple[Measure, ...] = ()
    """What the checks found, for the quality history."""


class Change(ABC):
    """A batch on its way. It is made ready for each attempt anew, until one lands."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, int]:
        """Uuid and schema id of the table that its rows were prepared for."""

    @abstractmethod
    def make(self, attempt: Attempt, changeset: int) -> Made | RowCounts:
        """Write what the attempt shall commit; only counts when there is nothing to commit."""

    def first_attempt(self) -> Attempt | None:
        """Return an attempt that is open already, once."""
        return None

    @property
    def reads_again(self) -> bool:
        """Rows of the source are read while the batch is made ready."""
        return False

    @property
    def times_read(self) -> int:
        """How often the source was read for the batch."""
        return 1

    def release(self) -> None:  # noqa: B027
        """Give back what was kept for further attempts."""


@dataclass(frozen=True)
class Published:
    """What a publish made."""

    snapshot: SnapshotId
    changeset: int
    entry: LedgerEntry
    made: Made
    properties: Mapping[str, str]
    """The table's properties after it."""

    @property
    def counts(self) -> RowCounts:
        return self.made.counts

    @property
    def bytes(self) -> int:
        return self.made.bytes

    @property
    def staged(self) -> Mapping[str, StagedFiles]:
        return self.made.staged


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
    sides: dict[str, SideTable] = field(default_factory=dict)
    """The side tables of this table, by the property that names each."""
    writer: str = field(default_factory=lambda: str(uuid4()))
    logged: dict[str, int] = field(default_factory=dict)
    """How far the side tables are known to be."""
    noticed: dict[str, None] = field(default_factory=dict)
    """What others did to the table, in words, each once."""
    quality: Callable[[], Quality] | None = None
    """Opens the quality history, and makes it when there is none; None where none is kept."""
    figures: int = 0
    """How many files the quality history had when it was opened last."""
    _epoch: int | None = None

    def publish(
        self,
        change: Change,
        planned: LedgerEntry | None,
        position: Position | None,
        before_swap: Callable[[], None],
    ) -> Published | RowCounts:
        """Make a batch visible. `planned` is the entry that its slice was planned from.

        Returns only counts when there was nothing to commit. Raises Fenced, SchemaMoved, TableRewound,
        OutboxFull, PublishConflict or PublishUnknown.
        """
        tried: list[Published] = []
        stuck: list[str | None] = []
        failure: SwapFailed | None = None
        for may_try in rounds(_TRIES):
            attempt = self._open(change, tried, may_try)
            if attempt is None:
                continue
            entry = read_entry(attempt.properties, self.pipeline)
            if mine := next((mine for mine in tried if mine.entry == entry), None):
                return self._claimed(mine)
            self._check_fence(attempt, entry, planned, [mine.entry for mine in tried])
            if not may_try:
                break  # the last round only looks whether the one before it landed
            self._check_base(attempt, change)
            try:
                made = self._make(attempt, change, entry, position)
            except SwapFailed as error:
                # Mostly somebody expired files under it. If the table stands still, it is something else.
                failure = error
                stuck = [*(version for version in stuck if version == attempt.version), attempt.version]
                if len(stuck) == _SAME:
                    break
                continue
            if isinstance(made, RowCounts):
                return made
            tried.append(made)
            before_swap()
            try:
                attempt.swap()
            except SwapFailed as error:
                # No kind of failure is special, a clean conflict included: only the ledger tells.
                failure = error
            else:
                return self._claimed(made)
        raise PublishConflict(str(self.table), _TRIES, str(failure))

    def _open(self, change: Change, tried: list[Published], may_try: bool) -> Attempt | None:
        """Return an attempt on the table as it is now; None when the catalog is to be asked once more."""
        try:
            return change.first_attempt() or Attempt(self.engine, self.table)
        except EskerError as error:
            if may_try:
                return None
            if tried:
                raise PublishUnknown(str(self.table), error.reason or error.message) from error
            raise

    def _check_base(self, attempt: Attempt, change: Change) -> None:
        """Raise unless a batch may be built on what the attempt found."""
        if (attempt.uuid, attempt.schema_id) != change.columns:
            raise SchemaMoved(str(self.table))
        check_descent(attempt, self.table)
        self.check_sides(attempt.properties)

    def _make(
        self, attempt: Attempt, change: Change, entry: LedgerEntry | None, position: Position | None
    ) -> Published | RowCounts:
        """Write a batch for an attempt and build its commit; only counts when nothing is to be committed."""
        head = read_head(attempt.properties)
        if note := foreign_note(attempt):
            self.noticed[note] = None
        made = change.make(attempt, (head.changeset if head else 0) + 1)
        if isinstance(made, RowCounts):
            return made
        return self._build(attempt, made, entry, position, self._outbox(attempt.properties))

    def _claimed(self, mine: Published) -> Published:
        self._epoch = mine.entry.epoch
        return mine

    def check_sides(self, properties: Mapping[str, str]) -> None:
        """Raise SideTableForeign or OutboxFull when a publish on a table with these properties would."""
        for name, side in self.sides.items():
            known = SideTable.registered(properties, name, self.table.catalog)
            if known is not None and known.uuid != side.uuid:
                raise SideTableForeign(str(side.id))
        self._outbox(properties)

    def _outbox(self, properties: Mapping[str, str]) -> tuple[OutboxEntry, ...]:
        """Return the entries that are still owed, or raise OutboxFull."""
        entries = tuple(
            entry
            for entry in read_outbox(properties)
            if any(entry.changeset > self.logged.get(name, -1) for name in entry.owed)
        )
        if self.sides:
            check_room(str(self.table), entries)
        return entries

    def _build(
        self,
        attempt: Attempt,
        made: Made,
        entry: LedgerEntry | None,
        position: Position | None,
        outbox: tuple[OutboxEntry, ...],
    ) -> Published:
        head = read_head(attempt.properties)
        changeset = (head.changeset if head else 0) + made.is_change
        summary = {"esker.pipeline": self.pipeline, "esker.run": self.run, **made.told}
        if made.is_change:
            summary["esker.changeset"] = str(changeset)
        snapshot, sequence = made.commit(attempt, summary)
        if entry is None or position != entry.position:
            # What of this pipeline was staged and held there comes no more, or was this batch.
            attempt.drop_branch(staging_branch(self.pipeline))
        if self.quality is not None and made.is_change:
            made = self._measured(attempt, made, changeset, snapshot)
        mine = LedgerEntry(
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
        properties = as_properties(self.pipeline, mine, Head(changeset, snapshot, sequence))
        properties |= self._owed(attempt, made, changeset, snapshot, outbox)
        if HASH_COLUMN in attempt.schema.arrow.names:
            properties |= foreign_property(attempt, foreign(attempt))
        attempt.set(properties)
        return Published(snapshot, changeset, mine, made, {**attempt.properties, **properties})

    def note(self, measures: Sequence[Measure], snapshot: SnapshotId, changeset: int) -> None:
        """Leave in the quality history what was found of a batch that is held.

        No publish owes it: a history that cannot be written does not keep people from hearing of the hold.
        """
        if self.quality is None:
            return
        # Whatever goes wrong with it, a store's error included: the hold itself is what must be told.
        with suppress(Exception):
            quality = self.quality()
            stamp = Stamp(self.pipeline, self.run, "", changeset, datetime.now(UTC))
            staged = quality.write(self.table, measures, snapshot, stamp, held=True)
            for may_try in rounds(_SAME):
                attempt = Attempt(self.engine, quality.side.id)
                if not may_try or attempt.last_snapshot_with("esker.held", str(snapshot)) is not None:
                    return  # also when only the answer was lost
                with suppress(SwapFailed):
                    attempt.append(staged, {"esker.held": str(snapshot), "esker.run": self.run})
                    attempt.swap()
                    return

    def _measured(self, attempt: Attempt, made: Made, changeset: int, snapshot: SnapshotId) -> Made:
        """Return a batch with what was measured of it. Its snapshot is built already: the figures name it."""
        assert self.quality is not None
        quality = self.quality()
        self.figures = quality.opened.data_files
        stamp = Stamp(self.pipeline, self.run, "", changeset, datetime.now(UTC))
        rows, before = attempt.built_records(), attempt.records_at(stamp.moment - _DAY)
        measures = [Measure("record_count", "table", rows), *made.measures]
        if rows is not None and before is not None:
            measures.append(Measure("daily_growth", "table", rows - before))
        staged = quality.write(self.table, measures, snapshot, stamp)
        files = quality.side.listed(quality.opened.store, changeset, staged)
        return replace(made, owed={**made.owed, QUALITY: files}, staged={**made.staged, QUALITY: staged})

    def _owed(
        self,
        attempt: Attempt,
        made: Made,
        changeset: int,
        snapshot: SnapshotId,
        outbox: tuple[OutboxEntry, ...],
    ) -> dict[str, str]:
        """Return the properties that say what this publish owes to the side tables."""
        properties: dict[str, str] = {}
        # Also what is logged already: another run may have gone further than this one has seen.
        known = (entry for entry in read_outbox(attempt.properties) if LOG in entry.owed)
        after = max(self.logged.get(LOG, 0), *(entry.changeset for entry in known), 0)
        if made.is_change and made.owed:
            outbox = (*outbox, OutboxEntry(changeset, after, snapshot, made.owed))
            for side in self.sides.values():
                properties |= side.registration()
            # A publish without a change leaves the outbox: its last entry tells where the log ends.
            properties |= outbox_property(outbox)
        return properties

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
