"""The rows that a load package has for one table, in the place of a pipeline's source.

The position names the last loads. A package that comes again, because its load was killed or its answer
was lost, finds itself there, in the commit that holds its rows, and is not loaded twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import let_go
from esker.engine.session import Engine
from esker.errors import LoadForgotten
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project import Pipeline
from esker.project.types import Column
from esker.sources import ORIGIN, Reader, Sent, Slice, Weight
from esker.sources.source import Command
from esker.sources.spool import ArrowSpool
from esker.sources.statement import MARK

_REMEMBERED = 50
"""Loads that a position names. dlt loads its packages in order; another machine may be some behind."""


class Marks(ABC):
    """Tells whose rows go beside those that the rows of a load replace."""

    @abstractmethod
    def find(self) -> tuple[DataFrame, int | None]:
        """Return the keys whose rows go, and the table's snapshot on which they were found."""

    @abstractmethod
    def close(self) -> None:
        """Remove what was written on the way."""


class PackageRows(Reader):
    """Reads what a load package has for a table. Without a load id, the position stays where it is."""

    def __init__(
        self,
        engine: Engine,
        pipeline: Pipeline,
        load_id: str | None,
        make: Callable[[], ArrowSpool],
        marks: Marks | None = None,
        until: datetime | None = None,
    ) -> None:
        self._engine, self._pipeline, self._load_id = engine, pipeline, load_id
        self._make, self._marks, self._until = make, marks, until
        self._spool: ArrowSpool | None = None
        self._marked: DataFrame | None = None
        self._kept: list[DataFrame] = []

    def plan(self, position: Position | None) -> list[Slice]:
        loads, load_id = loads_of(position), self._load_id
        end = position
        if load_id is not None:
            if load_id in loads:
                return []
            if len(loads) >= _REMEMBERED and float(load_id) < float(loads[0]):
                raise LoadForgotten(self._pipeline.table, load_id, loads[0])
            end = {"loads": [*loads, load_id][-_REMEMBERED:]}
        command = None
        if self._marks is not None:
            # Anew with every plan: what goes depends on the table.
            self._marked, base = self._marks.find()
            command = Command(MARK, base)
        rows = self._rows
        told = f"{rows.rows:,} rows of dlt load {load_id}"
        return [
            Slice(position, end, new_run_id(), rows.bytes, told, None, command=command, until=self._until)
        ]

    def sent(self, slices: Sequence[Slice]) -> Sent:
        columns = self._pipeline.declared_columns()
        return Sent(tuple(Column(column.name, column.type) for column in columns))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        rows = self._rows.frame(self._engine)
        if self._marked is not None:
            gone = self._marked.withColumn(MARK, F.lit(True))
            whole = rows.withColumn(MARK, F.lit(False)).unionByName(gone, allowMissingColumns=True)
            # As one source: of several, Spark does not tell in which order their rows arrived.
            rows = whole.localCheckpoint()
            self._kept.append(rows)
        return rows.withColumn(ORIGIN, F.lit(f"dlt load {self._load_id}"))

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        most, rows = self._pipeline.small_lane, self._rows
        if self._marked is not None or rows.rows > most.max_rows or rows.bytes > most.max_bytes:
            return None
        return rows.table()

    def weight(self, piece: Slice) -> Weight:
        return Weight() if self._marked is not None else Weight(self._rows.rows, self._rows.bytes)

    def close(self) -> None:
        while self._kept:
            let_go(self._kept.pop())
        if self._spool is not None:
            self._spool.close()
        if self._marks is not None:
            self._marks.close()

    @property
    def _rows(self) -> ArrowSpool:
        if self._spool is None:
            self._spool = self._make()
        return self._spool


def loads_of(position: Position | None) -> list[str]:
    """Return the loads that a position names, the oldest first."""
    return list((position or {}).get("loads", ()))
