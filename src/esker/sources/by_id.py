"""Some records of a source, each asked for by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import arrow_schema_as_spark
from esker.errors import EskerError, SourceRefused
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_from_json
from esker.sources.source import ORIGIN, Fetched, Opening, Reader, Sent, Slice, Weight
from esker.sources.spool import ArrowSpool

_TOGETHER = 1_000
"""Records that are written together."""


class KnowsIds(Protocol):
    """A source whose records have ids."""

    schema: pa.Schema

    def record(self, id: str) -> pa.Table:
        """Return one record. Raises SourceRefused for one that is not there."""

    def close(self) -> None:
        """Give back connections."""


class RecordsById(Reader):
    """Reads some records. Those that are not there are told, when the others are loaded."""

    def __init__(self, opening: Opening, source: KnowsIds, ids: Sequence[str]) -> None:
        self._opening, self._source, self._ids = opening, source, ids
        self._spool: ArrowSpool | None = None

    def plan(self, position: Position | None) -> list[Slice]:
        told = f"{len(self._ids)} record{'s' if len(self._ids) > 1 else ''} by id"
        return [Slice(position, position, new_run_id(), 0, told, None, is_repair=True)]

    def fetch(self, slices: list[Slice]) -> Fetched:
        self._drop()
        spool = self._spool = ArrowSpool(self._source.schema)
        failures: list[EskerError] = []
        for first in range(0, len(self._ids), _TOGETHER):
            found = []
            for id in self._ids[first : first + _TOGETHER]:
                try:
                    found.append(self._source.record(id))
                except SourceRefused as error:
                    failures.append(error)
            if found:
                spool.add(pa.concat_tables(found))
        spool.finish()
        if not spool.rows:
            return Fetched([], tuple(failures))
        return Fetched([replace(slices[0], bytes=spool.bytes, content=spool)], tuple(failures))

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return Sent(columns_from_json(arrow_schema_as_spark(self._source.schema)))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        rows = _spool(piece).frame(self._opening.engine)
        return rows.withColumn(ORIGIN, F.lit(self._opening.pipeline.source.reads))

    def weight(self, piece: Slice) -> Weight:
        return Weight(_spool(piece).rows, _spool(piece).bytes)

    def close(self) -> None:
        self._drop()
        self._source.close()

    def _drop(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None


def _spool(piece: Slice) -> ArrowSpool:
    assert isinstance(piece.content, ArrowSpool)
    return piece.content
