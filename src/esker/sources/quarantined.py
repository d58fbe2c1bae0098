"""Rows of a quarantine, in the place of a pipeline's source: they are read as the source sent them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, Plain, columns_as_json, columns_as_text
from esker.sources.source import MALFORMED, ORIGIN, RECORD, Reader, Sent, Slice, Weight


@dataclass
class QuarantinedRows(Reader):
    """Reads payloads of a quarantine. All values come as text, and are checked like those of a file."""

    choose: Callable[[], tuple[DataFrame, int]]
    """Returns rows of the quarantine whose payload is a JSON object, and how many they are."""
    columns: tuple[Column, ...]
    """The columns that the table has."""
    _chosen: tuple[DataFrame, int] | None = field(default=None, repr=False)

    @property
    def rows(self) -> DataFrame:
        assert self._chosen is not None
        return self._chosen[0]

    @property
    def count(self) -> int:
        assert self._chosen is not None
        return self._chosen[1]

    def plan(self, position: Position | None) -> list[Slice]:
        # Only now, when nobody else can: what another run has loaded meanwhile no longer waits.
        self._chosen = self.choose()
        told = f"{self.count:,} rows of the quarantine"
        return [Slice(position, position, new_run_id(), 0, told, None)]

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return Sent(tuple(Column(c.name, c.type) for c in self.columns), is_text=True)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        schema = StructType.fromJson(columns_as_json(columns_as_text(columns))).add(MALFORMED, StringType())
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
        payload = F.col("payload")
        parsed = self.rows.select(
            F.from_json(payload, schema, options).alias("parsed"), payload, F.col("origin").alias(ORIGIN)
        )
        values = [_value(column).alias(column.name) for column in columns]
        broken = F.col("parsed").getField(MALFORMED)
        told = F.when(broken.isNotNull(), F.concat(F.lit("does not have the table's columns: "), broken))
        record = F.when(broken.isNotNull(), payload)
        return parsed.select(*values, told.alias(MALFORMED), record.alias(RECORD), ORIGIN)

    def weight(self, piece: Slice) -> Weight:
        return Weight(self.count)


def _value(column: Column) -> Expression:
    text = F.col("parsed").getField(column.name)
    return F.unbase64(text) if column.type == Plain("binary") else text
