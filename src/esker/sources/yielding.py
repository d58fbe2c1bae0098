"""A source that is code of the user's: its rows go to the disk as it yields them, batch by batch.

The code goes on where it stopped while its rows are loaded, batch after batch. A run that is killed
calls it again with the last position that is in the table.
"""

from __future__ import annotations

import inspect
import json
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import arrow_schema, arrow_schema_as_spark
from esker.errors import FunctionFailed
from esker.functions import Reached
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.modes import SWAPPING, WHOLE
from esker.project.sources import DltSource, PythonSource
from esker.project.types import Column, columns_as_json, columns_from_json
from esker.sources.exact import with_columns
from esker.sources.function import Told
from esker.sources.handed_over import table_of_rows
from esker.sources.parts import Parts
from esker.sources.source import ORIGIN, Fetched, Opening, Reader, Sent, Slice, Weight
from esker.sources.spool import ArrowSpool

_ROWS = 10_000
"""Dictionaries that are turned into a table together."""
_PEEKED = 1_000
_OVER = object()


@dataclass(frozen=True)
class _Batch:
    """Rows of one slice: on the disk, or a frame of Spark's."""

    rows: ArrowSpool | DataFrame
    is_loose: bool
    """Some were dictionaries, whose types were guessed."""


class _Taken:
    """Rows of one batch as a function yields them."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._parts = Parts()
        self._frame: DataFrame | None = None
        self._loose: list[Mapping[str, Any]] = []
        self._is_loose = False

    @property
    def rows(self) -> int:
        return self._parts.rows + len(self._loose)

    def add(self, found: Any) -> None:
        """Take what was yielded, or raise FunctionFailed or UnsuitableData."""
        if self._frame is not None or (isinstance(found, DataFrame) and self.rows):
            why = "It yields a Spark frame and more. One frame is all that it may yield."
            raise FunctionFailed(self._function, why)
        if isinstance(found, DataFrame):
            self._frame = found
        elif isinstance(found, Mapping):
            self._is_loose = True
            self._loose.append(found)
            if len(self._loose) >= _ROWS:
                self._flush()
        else:
            self._flush()
            self._parts.add(self._table(found))

    def finish(self) -> _Batch | None:
        """Return what was taken; None for nothing."""
        self._flush()
        if self._frame is not None:
            return _Batch(self._frame, is_loose=False)
        return _Batch(self._parts.together(), self._is_loose) if self._parts.rows else None

    def close(self) -> None:
        self._parts.close()

    def _flush(self) -> None:
        if self._loose:
            self._parts.add(table_of_rows(self._loose))
            self._loose.clear()

    def _table(self, found: Any) -> pa.Table:
        if isinstance(found, pa.Table):
            return found
        if isinstance(found, pa.RecordBatch):
            return pa.Table.from_batches([found])
        if is_arrow(found):
            return pa.table(found)
        if isinstance(found, Iterable) and not isinstance(found, str | bytes):
            self._is_loose = True
            return table_of_rows(found)
        why = f"It yields {type(found).__name__}, which is neither a row nor a list of rows nor a table."
        raise FunctionFailed(self._function, why)


class YieldingReader(Reader):
    """Reads what code of the user's yields: rows, and how far it is with them."""

    def __init__(self, opening: Opening, source: PythonSource | DltSource, place: str) -> None:
        self._opening, self._source = opening, source
        self._place = place
        """Where the code stands, as the user wrote it."""
        self._yielded: Iterator[Any] | None = None
        self._position: Position | None = None
        self._waiting: Slice | None = None
        """Fetched, and not in the table yet: a table that changed meanwhile is planned for again."""
        self._is_over = False
        self._spools: list[ArrowSpool] = []

    @abstractmethod
    def _call(self, position: Position | None) -> Iterator[Any]:
        """Call the code; what it yields comes with the first `next`."""

    @property
    def _is_whole(self) -> bool:
        """A batch is all that the source holds."""
        return self._opening.pipeline.mode in WHOLE

    @property
    def _is_one_batch(self) -> bool:
        """Rows that take the place of stored ones are not cut, unless the project file says where."""
        is_cut = "rows_per_batch" in self._source.model_fields_set
        return self._is_whole or (self._opening.pipeline.mode in SWAPPING and not is_cut)

    def plan(self, position: Position | None) -> list[Slice]:
        if self._waiting is not None:
            return [self._waiting]
        if self._is_over:
            return []
        if self._yielded is None:
            self._position, self._yielded = position, self._call(position)
        return [Slice(self._position, self._position, new_run_id(), 0, self._source.reads, None)]

    def fetch(self, slices: list[Slice]) -> Fetched:
        if slices and slices[0].content is None:
            self._waiting = self._next(slices[0], self._source.rows_per_batch or sys.maxsize)
        has_more = not self._is_over
        return Fetched([self._waiting] if self._waiting is not None else [], (), has_more)

    def newest(self) -> Slice | None:
        """Return the first rows that it yields from the beginning."""
        self._yielded = self._call(None)
        return self._next(Slice(None, None, new_run_id(), 0, self._source.reads, None), None)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        found: dict[str, Column] = {}
        for batch in map(_batch, slices):
            if isinstance(batch.rows, DataFrame):
                columns = columns_from_json(batch.rows.schema.jsonValue())
            else:
                columns = columns_from_json(arrow_schema_as_spark(batch.rows.schema))
            found |= {column.name: Column(column.name, column.type) for column in columns}
        return Sent(tuple(found.values()), is_text=any(_batch(piece).is_loose for piece in slices))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        batch = _batch(piece)
        if isinstance(batch.rows, DataFrame):
            rows = batch.rows
        else:
            rows = self._as_wanted(batch, columns).frame(self._opening.engine)
        return rows.withColumn(ORIGIN, F.lit(self._source.reads))

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        batch = _batch(piece)
        most = self._opening.pipeline.small_lane
        if isinstance(batch.rows, DataFrame) or batch.rows.rows > most.max_rows:
            return None
        return None if batch.rows.bytes > most.max_bytes else self._as_wanted(batch, columns).table()

    def weight(self, piece: Slice) -> Weight:
        rows = _batch(piece).rows
        return Weight() if isinstance(rows, DataFrame) else Weight(rows.rows, rows.bytes)

    def settled(self, piece: Slice) -> None:
        self._position, self._waiting = piece.end, None
        self._drop_spools()

    def close(self) -> None:
        if inspect.isgenerator(self._yielded):
            # It may have things open, and close them in its own `finally`.
            with suppress(Exception):
                self._yielded.close()
        self._drop_spools()

    def _next(self, piece: Slice, most: int | None) -> Slice | None:
        """Take rows until a position is reached behind `most` of them, or all; a few for who only looks."""
        assert self._yielded is not None
        taken = _Taken(self._place)
        end, is_open = piece.start, False
        try:
            while True:
                with Told(self._place):
                    found = next(self._yielded, _OVER)
                if found is _OVER:
                    self._is_over = True
                    break
                if isinstance(found, Reached):
                    end, is_open = {"reached": self._checked(found.position)}, False
                    if most is not None and not self._is_one_batch and taken.rows >= most:
                        break
                    continue
                is_open = True
                taken.add(found)
                if most is None and taken.rows >= _PEEKED:
                    break
            self._check_end(end, is_open=is_open, is_peeked=most is None)
            batch = taken.finish()
        except BaseException:
            taken.close()
            raise
        if batch is None or isinstance(batch.rows, DataFrame):
            return replace(piece, end=end, content=batch) if batch is not None else None
        self._spools.append(batch.rows)
        told = f"{batch.rows.rows:,} rows of {self._source.reads}"
        return replace(piece, end=end, bytes=batch.rows.bytes, summary=told, content=batch)

    def _checked(self, position: Any) -> Any:
        """Return a position as the ledger gives it back, or raise FunctionFailed."""
        try:
            kept = json.loads(json.dumps(position))
        except (TypeError, ValueError) as error:
            raise FunctionFailed(self._place, f"JSON has no such position: {error}.") from error
        if kept != position:
            why = f"The position {position!r} would come back from JSON as {kept!r}."
            raise FunctionFailed(self._place, why)
        return kept

    def _check_end(self, end: Position | None, *, is_open: bool, is_peeked: bool) -> None:
        """Raise if rows would come again that nothing tells from others."""
        pipeline = self._opening.pipeline
        if is_open and end is not None and not is_peeked and not pipeline.is_keyed and not self._is_whole:
            why = "Rows come behind the last position that it reached: the next run would append them again."
            raise FunctionFailed(self._place, why, "End with: yield esker.reached(…)")

    def _as_wanted(self, batch: _Batch, columns: tuple[Column, ...]) -> ArrowSpool:
        """Return rows whose guessed types are those of the table, where no value is changed by that."""
        assert isinstance(batch.rows, ArrowSpool)
        if not batch.is_loose or not columns:
            return batch.rows
        kinds = {field.name.lower(): field.type for field in arrow_schema(columns_as_json(columns))}
        # Texts are left to the checks, which tell row by row what is no number.
        fields = [
            field
            if pa.types.is_string(field.type)
            else field.with_type(kinds.get(field.name.lower(), field.type))
            for field in batch.rows.schema
        ]
        wanted = pa.schema(fields)
        if wanted == batch.rows.schema:
            return batch.rows
        changed = ArrowSpool(wanted)
        self._spools.append(changed)
        for rows in batch.rows.pieces():
            changed.add(with_columns(rows, wanted))
        changed.finish()
        return changed

    def _drop_spools(self) -> None:
        while self._spools:
            self._spools.pop().close()


def is_arrow(found: Any) -> bool:
    return hasattr(found, "__arrow_c_stream__")


def _batch(piece: Slice) -> _Batch:
    assert isinstance(piece.content, _Batch)
    return piece.content
