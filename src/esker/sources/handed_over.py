"""Rows that a program hands over, in the place of a pipeline's source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from esker.engine.compat import arrow_schema, arrow_schema_as_spark, from_arrow
from esker.engine.session import Engine
from esker.errors import UnsuitableData
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, Plain, columns_as_json, columns_from_json
from esker.sources.exact import exactly
from esker.sources.source import Reader, Sent, Slice, Weight

_IN_MEMORY = 256 * 2**20
"""Bytes of rows that are handed to Java's memory."""
_GROUP = 100_000


@dataclass(frozen=True)
class HandedOver(Reader):
    """Reads rows that are there already. The position of the pipeline's own source does not move."""

    engine: Engine
    rows: pa.Table | None
    frame: DataFrame | None
    is_loose: bool = False
    """The rows are dictionaries: their types were guessed, and each value is taken for what it means."""
    _files: list[TemporaryDirectory[str]] = field(default_factory=list, repr=False, compare=False)
    """Folders with rows on their way to Spark."""

    @classmethod
    def of(
        cls,
        engine: Engine,
        data: DataFrame | pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]],
    ) -> HandedOver:
        """Take over rows, or raise UnsuitableData."""
        match data:
            case DataFrame():
                return cls(engine, None, data)
            case pa.Table():
                rows = data
            case pa.RecordBatch():
                rows = pa.Table.from_batches([data])
            case _:
                return cls(engine, table_of_rows(data), None, is_loose=True)
        return cls(engine, rows, None)

    def close(self) -> None:
        """Remove what was written on the way."""
        for folder in self._files:
            folder.cleanup()

    def plan(self, position: Position | None) -> list[Slice]:
        count = f"{len(self.rows):,} rows" if self.rows is not None else "rows"
        size = self.rows.nbytes if self.rows is not None else 0
        return [Slice(position, position, new_run_id(), size, f"{count} handed over", None)]

    def sent(self, slices: Sequence[Slice]) -> Sent:
        if self.frame is not None:
            columns = columns_from_json(self.frame.schema.jsonValue())
        else:
            assert self.rows is not None
            columns = columns_from_json(arrow_schema_as_spark(self.rows.schema))
        known = (column for column in columns if column.type != Plain("void"))
        return Sent(tuple(Column(column.name, column.type) for column in known), is_text=self.is_loose)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        if self.frame is not None:
            return self.frame
        rows = self.arrow(piece, columns)
        assert rows is not None
        if rows.nbytes > _IN_MEMORY and self.engine.project.spark.is_local:
            return self._through_a_file(rows)
        return from_arrow(self.engine.spark, rows)

    def _through_a_file(self, rows: pa.Table) -> DataFrame:
        """Let Spark read the rows from a disk that it shares: in Java's memory they would stand twice."""
        # A column without any type holds nothing, and Spark's files have no such column.
        rows = rows.select([column.name for column in rows.schema if not pa.types.is_null(column.type)])
        schema = arrow_schema_as_spark(rows.schema)
        try:
            rows = rows.cast(arrow_schema(schema))
        except pa.ArrowException as error:
            raise UnsuitableData(str(error)) from error
        folder = TemporaryDirectory(prefix="esker-rows-")
        self._files.append(folder)
        path = Path(folder.name) / "rows.parquet"
        pq.write_table(rows, path, row_group_size=_GROUP)
        return self.engine.spark.read.schema(StructType.fromJson(schema)).parquet(str(path))

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        if self.rows is None or not self.is_loose:
            return self.rows
        return _converted(self.rows, arrow_schema(columns_as_json(columns)))

    def weight(self, piece: Slice) -> Weight:
        if self.rows is not None:
            return Weight(len(self.rows), self.rows.nbytes)
        # What Spark thinks of a frame is no help: it knows nothing of filters and of rows that become many.
        return Weight()


def table_of_rows(data: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return dictionaries as a table, or raise UnsuitableData."""
    try:
        rows = [dict(row) for row in data]
        # Every row is looked at: a column that only the last row has would be lost otherwise.
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UnsuitableData(str(error)) from error


def _converted(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return rows as a table's types where no value is changed by that, or raise UnsuitableData."""
    kinds = {field.name.lower(): field.type for field in wanted}
    columns = [
        exactly(rows.column(name), kinds.get(name.lower(), rows.column(name).type), name)
        for name in rows.column_names
    ]
    return pa.table(columns, names=rows.column_names)
