"""All rows of one snapshot, cut into tasks that may be read anywhere, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from esker.errors import TaskNotOpened
from esker.reading.filter import RowFilter, chosen
from esker.reading.lake import Lake, OpenTable
from esker.reading.planned import parts_of, wanted_files
from esker.reading.pruning import Pruning
from esker.reading.readable import Readable, while_files_live
from esker.reading.rows import Part, RowReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_SIZE = 128 * 1024 * 1024
"""Bytes of data files that a task has, about."""


@dataclass(frozen=True)
class Access:
    """How a task gets at its rows, where it is read."""

    lake: Lake
    as_frame: Callable[[ReindexTask], DataFrame]


@dataclass(frozen=True)
class ReindexTask(Readable):
    """Some data files of a snapshot. All tasks of it together have each of its live rows once.

    A task can be pickled, and `as_json()` makes it a value of JSON; on the other side, `project.reindex_task`
    takes both. No keys travel with it.
    """

    catalog: str
    table: str
    snapshot_id: int
    number: int
    """Its place among the tasks, from 0."""
    mark: str | None
    """The column that marks deleted rows, when these are left out."""
    parts: tuple[Mapping[str, Any], ...] = field(repr=False)
    """Its data files, with the delete files that concern them."""
    current: str | None = None
    """The column that says which versions are current, when those of the past are left out."""
    columns: tuple[str, ...] | None = None
    """The columns that its rows have; None for all."""
    where: str | None = None
    """The filter that its rows match, when not all are wanted."""
    _access: Access | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.as_json()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(_fields(state), _access=None)

    @property
    def files(self) -> list[str]:
        """The locations of its data files."""
        return [part["path"] for part in self.parts]

    @property
    def rows(self) -> int:
        """How many rows it has; at most, where rows are left out or filtered, or deleted by value or in many
        files.
        """
        return sum(part["rows"] - _known_deletes(part) for part in self.parts)

    @property
    def bytes(self) -> int:
        """How large its data files are."""
        return sum(part["bytes"] for part in self.parts)

    @property
    def schema(self) -> pa.Schema:
        arrow = self._reader.arrow
        return arrow if self.columns is None else pa.schema([arrow.field(name) for name in self.columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        reader, wanted = self._reader, self.row_filter
        pruning = Pruning(reader.metadata, wanted) if wanted is not None else None
        for document in self.parts:
            part = Part.from_json(document, reader.metadata)
            with while_files_live(part.path):
                for batch in reader.read(part, pruning):
                    live = batch if self.mark is None else _unmarked(batch, self.mark)
                    live = live if self.current is None else _current(live, self.current)
                    live = live if wanted is None else wanted.rows(live)
                    if live.num_rows:
                        yield live if self.columns is None else live.select(self.columns)

    def to_spark(self) -> DataFrame:
        return self._opened.as_frame(self)

    def as_json(self) -> dict[str, Any]:
        return {
            "catalog": self.catalog,
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "number": self.number,
            "mark": self.mark,
            "parts": [dict(part) for part in self.parts],
            "current": self.current,
            "columns": None if self.columns is None else list(self.columns),
            "where": self.where,
        }

    @property
    def _opened(self) -> Access:
        if self._access is None:
            raise TaskNotOpened(self.table, self.number)
        return self._access

    @cached_property
    def row_filter(self) -> RowFilter | None:
        """Its filter, for the columns of the snapshot. Raises ScanInvalid."""
        return RowFilter.of(self.table, self._schema, self.where)

    @cached_property
    def _pinned(self) -> OpenTable:
        return self._opened.lake.pinned(self.catalog, self.table, self.snapshot_id)

    @property
    def _schema(self) -> Schema:
        return self._pinned.schema_at(self._pinned.snapshot(self.snapshot_id))

    @cached_property
    def _reader(self) -> RowReader:
        table = self._pinned
        marks = [name for name in (self.mark, self.current) if name is not None]
        further = [*marks, *(self.row_filter.columns if self.row_filter is not None else ())]
        needed = chosen(self.table, self._schema, self.columns, further)
        return RowReader(self.table, table.metadata, table.store, needed)


def open_task(task: ReindexTask | Mapping[str, Any], access: Access) -> ReindexTask:
    """Return a task that came from elsewhere, ready to be read here."""
    if isinstance(task, ReindexTask):
        return replace(task, _access=access)
    return ReindexTask(**_fields(task), _access=access)


def tasks_of(
    table: OpenTable,
    snapshot_id: int | None,
    mark: str | None,
    current: str | None,
    size: int,
    access: Access,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> tuple[ReindexTask, ...]:
    """Return the tasks of a snapshot: its data files, put together to about a size.

    `mark` and `current` are columns that say which rows are left out. Files in which no row matches `where`
    are in no task. Raises ScanInvalid.
    """
    snapshot = table.current if snapshot_id is None else table.snapshot(snapshot_id)
    schema = table.schema_at(snapshot)
    wanted = RowFilter.of(table.name, schema, where)
    chosen(table.name, schema, columns)
    if snapshot is None:
        return ()
    names = schema.column_names
    if mark not in names:
        mark = None  # nothing has been marked in it yet
    if current not in names:
        current = None
    live, found = wanted_files(table, snapshot, wanted)
    # Files of one partition together: delete files are of a partition, and read once by a task.
    files = sorted(found, key=lambda file: (file.spec_id, repr(file.partition), file.path))
    documents = (part.as_json(table.metadata) for part in parts_of(table, live, files))
    return tuple(
        ReindexTask(
            table.catalog,
            table.name,
            snapshot.snapshot_id,
            number,
            mark,
            parts,
            current,
            None if columns is None else tuple(dict.fromkeys(columns)),
            where,
            access,
        )
        for number, parts in enumerate(_packed(documents, size))
    )


def _packed(parts: Iterable[Mapping[str, Any]], size: int) -> Iterator[tuple[Mapping[str, Any], ...]]:
    """Yield files, one after the other, so many that they are not larger than a size together."""
    together: list[Mapping[str, Any]] = []
    filled = 0
    for part in parts:
        if together and filled + part["bytes"] > size:
            yield tuple(together)
            together, filled = [], 0
        together.append(part)
        filled += part["bytes"]
    if together:
        yield tuple(together)


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    columns = document.get("columns")
    own = {"parts": tuple(document["parts"]), "columns": None if columns is None else tuple(columns)}
    return {**document, **own}


def _known_deletes(part: Mapping[str, Any]) -> int:
    return sum(delete["rows"] for delete in part.get("deletes", ()) if "of" in delete)


def _current(batch: pa.RecordBatch, column: str) -> pa.RecordBatch:
    return batch.filter(pc.fill_null(batch.column(column), False))


def _unmarked(batch: pa.RecordBatch, mark: str) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.fill_null(batch.column(mark), False)))
