"""Sources whose rows Spark has at hand: a slice of them is a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_from_json
from esker.sources.source import ORIGIN, Opening, Reader, Sent, Slice, Weight
from esker.sources.span import Span


@dataclass(frozen=True)
class Rows:
    """What a slice reads."""

    frame: DataFrame
    count: int | None = None


class FrameReader(Reader):
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

    def _piece(
        self, position: Position | None, end: Position | None, told: str, content: Rows, **keys: Any
    ) -> Slice:
        return Slice(position, end, new_run_id(), 0, told, content, **keys)


def _rows(piece: Slice) -> Rows:
    assert isinstance(piece.content, Rows)
    return piece.content
