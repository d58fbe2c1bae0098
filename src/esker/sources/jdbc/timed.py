"""A table of a database by windows of time.

Each window is one query, which sees what is committed when it begins. The clock that says which windows are
over is the database's, and is asked before. A row whose transaction began inside a window and was committed
after its query is missed: no database tells that a time is over for all transactions, so `lag` must be
longer than they take, and longer than a replica is behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from esker.engine.compat import arrow_schema
from esker.engine.failures import explained
from esker.engine.jdbc import DatabaseColumn
from esker.engine.session import Engine
from esker.errors import CursorUnsuitable, NullCursor
from esker.project.sources import JdbcSource
from esker.project.types import Column
from esker.sources.jdbc.database import Relation, unsuitable
from esker.sources.jdbc.dialect import SqliteDialect
from esker.sources.source import Sent, Slice
from esker.sources.windowed import UNTIL_FIELD, TimedSource, WindowedReader
from esker.sources.windows import Window

_DAY = 86_400
_BATCH = 1_000
"""Rows at a time; they may be wide."""


class TimedTable(TimedSource):
    """A table or query whose cursor is a time. Without a zone, it is UTC."""

    def __init__(self, engine: Engine, source: JdbcSource) -> None:
        assert source.cursor is not None
        self._engine, self._source, self._cursor = engine, source, source.cursor
        self._relation = Relation(engine, source, is_moving=True)
        self._earliest: datetime | None = None
        self._is_checked = False

    @cached_property
    def schema(self) -> pa.Schema:
        with explained("cannot look into the database", self._engine.log, reads_source=True):
            return arrow_schema(self._relation.frame().schema.jsonValue())

    @property
    def is_text(self) -> bool:
        """Values come as texts."""
        return self._relation.dialect.is_text

    @property
    def sent(self) -> Sent:
        """Its columns, where values come as texts."""
        dialect = self._relation.dialect
        assert isinstance(dialect, SqliteDialect)
        return Sent(dialect.sent(self._relation.columns), is_text=True)

    @property
    def granule(self) -> int:
        return _DAY if self._relation.dialect.is_date(self._column) else 1

    def now(self) -> datetime:
        return self._relation.now()

    def earliest(self) -> datetime | None:
        """Return the lowest time. It is asked for once: without an index, that looks at all rows."""
        if self._earliest is None:
            seconds = self._relation.number(self._relation.dialect.earliest(self._column))
            if seconds is not None and math.isinf(seconds):
                raise self._timeless("Its lowest value is -infinity.")
            if seconds is not None:
                found = math.floor(seconds) // self.granule * self.granule
                self._earliest = datetime.fromtimestamp(found, UTC)
        return self._earliest

    def check(self) -> None:
        """Look at the columns anew, and at what would lie in no window."""
        self._relation.close()
        dialect, column = self._relation.dialect, self._column
        if not dialect.is_time(column):
            raise unsuitable(
                self._source,
                column.name,
                f"Its type is {column.type}, and windows are of time.",
                "Name a column that holds times or dates, or leave out window:.",
            )
        if self._is_checked:
            return  # the rows are looked at once: without an index, that is all of them
        timeless = dialect.timeless(column)
        if timeless is not None and (count := self._relation.count(timeless)):
            raise self._timeless(
                f"Values that are no moments would lie in no window. Rows that have one: {count}."
            )
        if self._source.nulls == "error" and (nulls := self._relation.nulls(column)):
            raise NullCursor(self._source.reads, column.name, nulls)
        self._is_checked = True

    def exceeds(self, window: Window, rows: int) -> bool:
        return self._relation.has_more(self._inside(window), rows)

    def pages(self, window: Window) -> Iterator[pa.Table]:
        inside = self._inside(window)
        # Of a long past, most windows are empty: a Spark job for each would take hundreds of times as long.
        is_empty = not self._relation.has(inside)
        # While Spark reads, nobody needs the connection.
        self._relation.release()
        if is_empty:
            return
        # Spark writes them to the disk: however many there are, neither Java nor this process holds all.
        with TemporaryDirectory(prefix="esker-rows-", dir=self._folder) as folder:
            path = Path(folder) / "rows"
            with explained("cannot read the database", self._engine.log, reads_source=True):
                self._relation.frame([inside]).write.parquet(str(path))
            for file in sorted(path.glob("*.parquet")):
                # As nanoseconds, which Arrow would make of them, times end in 2262.
                with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as written:
                    for batch in written.iter_batches(_BATCH):
                        yield pa.Table.from_batches([batch]).cast(self.schema)

    def dated(self, rows: pa.Table, window: Window) -> pa.Table:
        """Return rows with the moment that the cursor tells, where it is one to the second or finer."""
        column = next((each for each in rows.column_names if each.lower() == self._cursor.lower()), "")
        if not column or not pa.types.is_timestamp(rows.schema.field(column).type):
            return super().dated(rows, window)
        moments = rows.column(column).cast(pa.timestamp("us")).cast(UNTIL_FIELD.type)
        return rows.append_column(UNTIL_FIELD, moments)

    def _timeless(self, why: str) -> CursorUnsuitable:
        remedy = self._relation.dialect.remedy_for_timeless
        return CursorUnsuitable(self._source.reads, self._column.name, why, remedy)

    def _inside(self, window: Window) -> str:
        return self._relation.dialect.between(self._column, window.since, window.until)

    def close(self) -> None:
        self._relation.close()

    @property
    def _column(self) -> DatabaseColumn:
        return self._relation.column(self._cursor)

    @property
    def _folder(self) -> Path | None:
        """Where Spark can put rows: on a cluster in the project's folder, which all workers see."""
        project = self._engine.project
        if project.spark.is_local:
            return None
        folder = project.folder / ".esker"
        folder.mkdir(exist_ok=True)
        return folder


class WindowedTexts(WindowedReader):
    """Reads windows of a database whose values come as texts, to be parsed as their columns' types."""

    def sent(self, slices: Sequence[Slice]) -> Sent:
        assert isinstance(self._source, TimedTable)
        return self._source.sent

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        return None
