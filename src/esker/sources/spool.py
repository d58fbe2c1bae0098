"""Rows on their way: written to the disk piece by piece as they arrive, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from esker.engine.compat import from_arrow
from esker.engine.session import Engine

_GROUP = 50_000


class Spool:
    """Rows of one schema in a file of this machine."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows = 0
        self.bytes = 0
        """As they are in memory."""
        self._folder = TemporaryDirectory(prefix="esker-rows-")
        self.path = Path(self._folder.name) / "rows.parquet"
        self._writer: pq.ParquetWriter | None = pq.ParquetWriter(self.path, schema)

    def add(self, rows: pa.Table) -> None:
        """Write some rows."""
        assert self._writer is not None
        self._writer.write_table(rows, row_group_size=_GROUP)
        self.rows += len(rows)
        self.bytes += rows.nbytes

    def finish(self) -> None:
        """No more rows come."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def pieces(self) -> Iterator[pa.Table]:
        """Yield all rows, some at a time."""
        self.finish()
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_GROUP):
                yield pa.Table.from_batches([batch], self.schema)

    def table(self) -> pa.Table:
        """Return all rows."""
        self.finish()
        return pq.read_table(self.path, schema=self.schema)

    def frame(self, engine: Engine) -> DataFrame:
        """Return all rows as a frame. Executors on other machines do not see the file: they are sent."""
        self.finish()
        if not engine.project.spark.is_local:
            return from_arrow(engine.spark, self.table())
        return engine.spark.read.parquet(self.path.as_uri())

    def close(self) -> None:
        """Remove the file."""
        self.finish()
        self._folder.cleanup()
