"""What both lanes of a keyed mode are given, and what they leave in side tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from esker.contracts.rules import Tally
from esker.engine.compat import to_arrow
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.stage import StagedFiles
from esker.errors import TableMoved
from esker.events import Step
from esker.ledger.change_log import ChangeLog
from esker.ledger.quarantine import Quarantine
from esker.ledger.side_table import Files, OpenSide, Stamp
from esker.load.counts import RowCounts
from esker.load.diff import KeyRules
from esker.load.guards import Guards
from esker.load.memory import Memory
from esker.load.rejected import with_resolved
from esker.project.types import Column

Rows: TypeAlias = pa.Table | DataFrame
"""Of a small batch, or of a large one."""
_Rows = TypeVar("_Rows", pa.Table, DataFrame)

NO_KEY = "key"
"""The rule that a row without a key breaks."""
NO_ORDER = "order_by"
"""The rule that a version breaks which does not tell when it began."""


@dataclass(frozen=True)
class Comparison:
    """How a batch is compared with its table, and where its changes go."""

    rules: KeyRules
    base: SnapshotId | None
    """The snapshot that the rows of a statement were found on; None for rows of a source."""
    table: tuple[str, int]
    """Uuid and schema id of the table that the rows were prepared for."""
    fields: tuple[Column, ...]
    """The table's columns, without Esker's own."""
    ids: dict[str, int]
    """Field ids by path."""
    pipeline: str
    run: str
    slice: str
    log: ChangeLog | None
    quarantine: Callable[[], Quarantine]
    """Opens the quarantine, and makes it when there is none."""
    memory: Memory
    guards: Guards
    resolved: DataFrame | None
    """What is written into the quarantine with the batch: rows of it are loaded again."""
    reached: Callable[[Step], None]

    def check_base(self, attempt: Attempt) -> None:
        """Raise TableMoved when rows of a statement were found on another snapshot than this one."""
        if self.rules.is_command and attempt.current != self.base:
            raise TableMoved(self.pipeline)

    def stamp(self, changeset: int) -> Stamp:
        """Return what the rows of this batch share, if it becomes this changeset now."""
        return Stamp(self.pipeline, self.run, self.slice, changeset, datetime.now(UTC))

    def check(self, counts: RowCounts, live: Callable[[], int], tally: Tally) -> None:
        """Raise Held when a batch with these outcomes must not be published unseen."""
        deletes = counts.deleted + counts.missing
        if self.rules.swaps:
            # A row that changed has gone and come: what counts is by how many rows the keys shrink.
            deletes = max(deletes - counts.inserted, 0)
        self.guards.check(counts.read, deletes, live, tally)

    def stage_sides(
        self, stamp: Stamp, *, changes: Rows | None, rejected: Rows | None, deletes: Rows | None
    ) -> tuple[dict[str, Files], dict[str, StagedFiles]]:
        """Write what goes to side tables; return what a publish owes each, by name and as files."""
        owed: dict[str, Files] = {}
        staged: dict[str, StagedFiles] = {}

        def stage(side: OpenSide, rows: Rows) -> None:
            files = staged[side.property] = side.stage(rows, stamp)
            owed[side.property] = side.side.listed(side.opened.store, stamp.changeset, files)

        if self.log is not None and changes is not None:
            stage(self.log, changes)
        if (owed_rows := self._quarantined(rejected)) is not None:
            stage(self.quarantine(), owed_rows)
        if deletes is not None:
            stage(self.memory.open(), deletes)
        return owed, staged

    def _quarantined(self, rejected: Rows | None) -> Rows | None:
        """Return what goes to the quarantine: rows that are bad, and what became of earlier ones."""
        if not isinstance(rejected, pa.Table):
            return with_resolved(rejected, self.resolved)
        if self.resolved is None:
            return rejected
        return pa.concat_tables([rejected, to_arrow(self.resolved)], promote_options="permissive")


@dataclass(frozen=True)
class Compared(Generic[_Rows]):
    """What a batch does to its table, as the comparison found it."""

    counts: RowCounts
    doomed: dict[FileEntry, BitMap64]
    """Positions of stored rows that go."""
    rows: _Rows
    """Rows that come."""
    changes: _Rows | None
    """Rows of the change log, if there is one."""
    remembered: _Rows | None
    """Deletes that no row of the table will tell of."""
    is_change: bool
    """There is something to tell others: it gets a changeset number."""

    @property
    def is_nothing(self) -> bool:
        """Nothing is to be committed."""
        return not self.doomed and not self.is_change
