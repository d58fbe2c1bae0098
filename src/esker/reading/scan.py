"""The rows of one snapshot of a table, read in this process. Files without a wanted row are not opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.schema import Schema

from esker.reading.filter import RowFilter, TimeRange, chosen
from esker.reading.lake import OpenTable
from esker.reading.planned import parts_of, wanted_files
from esker.reading.pruning import Pruning
from esker.reading.readable import Readable, while_files_live
from esker.reading.rows import Part, RowReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TableScan(Readable):
    """Rows of a table at one snapshot, with some of its columns. Nothing is read before it is asked for."""

    table: OpenTable = field(repr=False)
    snapshot_id: int | None
    """The snapshot that is read; None for a table that nothing was ever written to."""
    columns: tuple[str, ...]
    row_filter: RowFilter | None = field(repr=False)
    """Which rows are wanted; None for all."""
    _as_frame: Callable[[TableScan], DataFrame] = field(repr=False, compare=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self._reader.arrow.field(name) for name in self.columns])

    @property
    def files(self) -> list[str]:
        """The locations of the data files that may hold its rows: no other one is opened."""
        return [part.path for part in self.parts]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """These files, with what is deleted in them."""
        snapshot = self.table.snapshot(self.snapshot_id) if self.snapshot_id is not None else None
        live, files = wanted_files(self.table, snapshot, self.row_filter)
        return tuple(parts_of(self.table, live, files))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        wanted = self.row_filter
        pruning = Pruning(self.table.metadata, wanted) if wanted is not None else None
        for part in self.parts:
            with while_files_live(part.path):
                for batch in self._reader.read(part, pruning):
                    found = batch if wanted is None else wanted.rows(batch)
                    if found.num_rows:
                        yield found.select(self.columns)

    def to_spark(self) -> DataFrame:
        return self._as_frame(self)

    @cached_property
    def _reader(self) -> RowReader:
        snapshot = self.table.snapshot(self.snapshot_id) if self.snapshot_id is not None else None
        further = self.row_filter.columns if self.row_filter is not None else ()
        needed: Schema = chosen(self.table.name, self.table.schema_at(snapshot), self.columns, further)
        return RowReader(self.table.name, self.table.metadata, self.table.store, needed)


def scan_of(
    table: OpenTable,
    snapshot_id: int | None,
    columns: Sequence[str] | None,
    where: str | None,
    times: TimeRange | None,
    as_frame: Callable[[TableScan], DataFrame],
) -> TableScan:
    """Return rows of a snapshot of a table; without one, of the newest. Raises ScanInvalid."""
    snapshot = table.current if snapshot_id is None else table.snapshot(snapshot_id)
    schema = table.schema_at(snapshot)
    names = tuple(each.name for each in chosen(table.name, schema, columns).fields)
    wanted = RowFilter.of(table.name, schema, where, times)
    return TableScan(table, snapshot.snapshot_id if snapshot is not None else None, names, wanted, as_frame)
