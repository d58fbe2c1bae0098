"""Other Iceberg tables as sources: one of them, or a query on several.

A table is read at one snapshot, and its position is that snapshot: as long as it is the newest one, there
is nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.lineage import snapshots_since
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table import Table, TableId, find_table, list_tables
from esker.engine.query import query_frame, snapshots_read
from esker.errors import SourceRefused, TableNotFound
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.reserved import is_own
from esker.project.sources import QuerySource, TableSource
from esker.project.types import Column, columns_from_json, quoted
from esker.sources.source import ORIGIN, Opening, Reader, Sent, Slice, Weight
from esker.sources.span import Span

_MOVES = re.compile(
    r"\b(current_(date|timestamp|time)|localtimestamp|curdate|now|rand|randn|random|uuid)\b", re.IGNORECASE
)
"""What answers differently each time, whatever the tables hold."""
_ADDING = ("append", "replace")
"""Kinds of snapshots that change no row: rows were added, or files were put together."""


@dataclass(frozen=True)
class _Rows:
    """What a slice reads."""

    frame: DataFrame
    count: int | None = None


class _FrameReader(Reader):
    """Reads frames. How they are found is left to others."""

    def __init__(self, opening: Opening, span: Span | None = None) -> None:
        self._opening, self._span = opening, span
        self._reads = opening.pipeline.source.reads

    def sent(self, slices: Sequence[Slice]) -> Sent:
        columns = [c for piece in slices for c in columns_from_json(_rows(piece).frame.schema.jsonValue())]
        found = {column.name: Column(column.name, column.type, doc=column.doc) for column in columns}
        return Sent(tuple(found.values()))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return _rows(piece).frame.withColumn(ORIGIN, F.lit(self._reads))

    def weight(self, piece: Slice) -> Weight:
        return Weight(_rows(piece).count)

    def _piece(self, position: Position | None, end: Position | None, told: str, **keys: Any) -> Slice:
        # What is read again does not move the position.
        return Slice(position, position if self._span is not None else end, new_run_id(), 0, told, **keys)


class TableReader(_FrameReader):
    """Reads a table."""

    def __init__(self, opening: Opening, source: TableSource, span: Span | None = None) -> None:
        super().__init__(opening, span)
        self._source = source
        self._id = _found(opening, source.table)

    @classmethod
    def of(cls, opening: Opening) -> TableReader:
        source = opening.pipeline.source
        assert isinstance(source, TableSource)
        return cls(opening, source)

    def again(self, span: Span) -> TableReader | None:
        return TableReader(self._opening, self._source, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        engine = self._opening.engine
        engine.open_catalog(self._id.catalog)
        present = find_table(engine, self._id)
        if present is None:
            if any(other.table == self._source.table for other in engine.project.pipelines.values()):
                return []  # its own pipeline makes it
            raise TableNotFound(str(self._id), list_tables(engine, self._id.catalog))
        if present.snapshot is None:
            return []
        newest = present.snapshot.id
        end = {"table": present.uuid, "snapshot": newest}
        if position == end and self._span is None:
            return []
        if self._source.read == "appended" and position is not None and self._span is None:
            frame, count = self._appended(present, position), None
            if frame is None:
                return []
            told = f"rows appended to table {self._id}"
        else:
            frame = self._frame(present, None)
            total = present.snapshot.summary.get("total-records")
            count = int(total) if total is not None and self._source.where is None else None
            told = f"all of table {self._id}"
        content = _Rows(frame, count)
        return [self._piece(position, end, told, content=content, until=present.snapshot.committed_at)]

    def _appended(self, present: Table, position: Position) -> DataFrame | None:
        """Return the rows that came since a position; None when there are none. Raises SourceRefused."""
        remedy = (
            f"Read it whole, once: esker backfill {self._opening.name} --full; or write read: whole and a "
            "mode with a key."
        )
        if position["table"] != present.uuid:
            raise SourceRefused(self._reads, "It is another table than the one that was read before.", remedy)
        since = snapshots_since(self._opening.engine, present, position["snapshot"])
        if since is None:
            why = "The snapshot that was read last is gone: it was expired, or the table was rolled back."
            raise SourceRefused(self._reads, why, remedy)
        for snapshot in since:
            if snapshot.operation not in _ADDING:
                why = f"Rows were changed or deleted since (snapshot {snapshot.id}, {snapshot.operation})."
                raise SourceRefused(self._reads, why, remedy)
        if not any(snapshot.operation == "append" for snapshot in since):
            return None
        return self._frame(present, position["snapshot"])

    def _frame(self, present: Table, after: SnapshotId | None) -> DataFrame:
        """Return the table's rows, or those that came after a snapshot, without Esker's own columns."""
        engine, snapshot = self._opening.engine, present.snapshot
        assert snapshot is not None
        reader = engine.spark.read
        if after is not None:
            reader = reader.option("start-snapshot-id", str(after))
            reader = reader.option("end-snapshot-id", str(snapshot.id))
        elif snapshot.schema_id == present.schema_id:
            # A snapshot has the columns of its time: where others have come since, the table itself is read.
            reader = reader.option("versionAsOf", str(snapshot.id))
        with explained(f'cannot read table "{self._id}"', engine.log, reads_source=True):
            found = reader.table(self._id.sql)
            found = found.where(self._source.where) if self._source.where is not None else found
            return found.select(*(quoted(name) for name in found.columns if not is_own(name)))


class QueryReader(_FrameReader):
    """Reads what a query returns."""

    def __init__(self, opening: Opening, source: QuerySource, span: Span | None = None) -> None:
        super().__init__(opening, span)
        self._source = source

    @classmethod
    def of(cls, opening: Opening) -> QueryReader:
        source = opening.pipeline.source
        assert isinstance(source, QuerySource)
        return cls(opening, source)

    def again(self, span: Span) -> QueryReader | None:
        return QueryReader(self._opening, self._source, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        engine = self._opening.engine
        catalog = engine.project.catalog_name(self._opening.pipeline.catalog)
        for name in engine.project.catalogs():
            engine.open_catalog(name)
        with explained("cannot run the source's query", engine.log, reads_source=True):
            frame = query_frame(engine, catalog, self._source.sql)
            states = None if _MOVES.search(self._source.sql) else snapshots_read(frame)
        # What else it reads may have changed unseen.
        end = {"snapshots": states} if states else None
        if end is not None and position == end and self._span is None:
            return []
        return [self._piece(position, end or position, "what a query returns", content=_Rows(frame))]


def _found(opening: Opening, name: str) -> TableId:
    """Return a table by name: a pipeline's, or one whose first part names the catalog."""
    project = opening.engine.project
    for pipeline in project.pipelines.values():
        if pipeline.table == name:
            return TableId(project.catalog_name(pipeline.catalog), name)
    catalog, _, rest = name.partition(".")
    if catalog in project.catalogs() and "." in rest:
        return TableId(catalog, rest)
    return TableId(project.catalog_name(opening.pipeline.catalog), name)


def _rows(piece: Slice) -> _Rows:
    assert isinstance(piece.content, _Rows)
    return piece.content
