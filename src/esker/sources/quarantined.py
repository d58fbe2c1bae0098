"""Rows of a quarantine, in the place of a pipeline's source: they are read as the source sent them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_as_json
from esker.sources.files.jsonl import as_text
from esker.sources.source import ORIGIN, Sent, Slice, Weight


@dataclass
class QuarantinedRows:
    """Reads payloads of a quarantine. All values come as text, and are checked like those of a file."""

    fingerprint: str
    rows: DataFrame
    """Rows of the quarantine whose payload is a JSON object."""
    count: int
    columns: tuple[Column, ...]
    """The columns that the pipeline declares, or its table has."""

    def plan(self, position: Position | None) -> list[Slice]:
        told = f"{self.count:,} rows of the quarantine"
        return [Slice(position, position, new_run_id(), 0, told, None)]

    def newest(self) -> Slice | None:
        return self.plan(None)[0]

    def check(self, slices: Sequence[Slice]) -> None:
        pass

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return Sent(tuple(Column(c.name, c.type) for c in self.columns), is_text=True)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        schema = StructType.fromJson(columns_as_json(as_text(columns)))
        parsed = self.rows.select(
            F.from_json("payload", schema).alias("parsed"), F.col("origin").alias(ORIGIN)
        )
        values = [F.col("parsed").getField(column.name).alias(column.name) for column in columns]
        return parsed.select(*values, ORIGIN)

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        return None

    def weight(self, piece: Slice) -> Weight:
        return Weight(self.count)

    def confirm(self, piece: Slice) -> None:
        pass

    def record(self, piece: Slice, run: str) -> None:
        pass
