"""Some records of a source, each asked for by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.engine.compat import arrow_schema_as_spark
from esker.errors import EskerError, SourceRefused, SourceUnavailable
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_from_json
from esker.sources.source import Fetched, Opening, Reader, Sent, Slice, Weight
from esker.sources.spool import ArrowSpool
from esker.sources.windowed import spooled_frame

_TOGETHER = 1_000
"""Records that are written together."""
_IN_VAIN = 3
"""So many that cannot be read, one after the other, end a run."""


class KnowsIds(Protocol):
    """A source whose records have ids."""

    schema: pa.Schema

    def spool(self) -> ArrowSpool:
        """Return where its records are kept on their way."""

    def record(self, id: str) -> pa.Table:
        """Return one record. Raises SourceRefused for one that is not there (`is_gone`)."""

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
        spool = self._spool = self._source.spool()
        failures: list[EskerError] = []
        in_vain = 0
        for first in range(0, len(self._ids), _TOGETHER):
            found = []
            for id in self._ids[first : first + _TOGETHER]:
                try:
                    found.append(self._source.record(id))
                except SourceRefused as error:
                    failures.append(error)
                except SourceUnavailable as error:
                    # An answer about one record may be broken; who answers nothing any more is down.
                    in_vain += 1
                    if in_vain == _IN_VAIN:
                        raise
                    failures.append(error)
                    continue
                in_vain = 0
            if found:
                spool.add(pa.concat_tables(found))
        spool.finish()
        if not spool.rows:
            return Fetched([], tuple(failures))
        return Fetched([replace(slices[0], bytes=spool.bytes, content=spool)], tuple(failures))

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return Sent(columns_from_json(arrow_schema_as_spark(self._source.schema)))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return spooled_frame(self._opening, _spool(piece))

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
