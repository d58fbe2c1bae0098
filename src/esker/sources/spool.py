"""Rows on their way: written to the disk piece by piece as they arrive, so that memory stays flat."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from esker.engine.compat import from_arrow
from esker.engine.session import Engine

_GROUP = 50_000
_PIECE_BYTES = 8_000_000
"""Of rows that are copied together. With 32 MB a process held 150 MB more, mostly what allocators keep."""
_DIGEST_BYTES = 16

_Rows = TypeVar("_Rows")
"""Some rows, as a source gives them."""


class Spool(ABC, Generic[_Rows]):
    """Rows in a file of this machine."""

    def __init__(self, file: str, folder: Path | None = None) -> None:
        self.rows = 0
        self.bytes = 0
        """As they are in memory."""
        self._folder = TemporaryDirectory(prefix="esker-rows-", dir=folder)
        self.path = Path(self._folder.name) / file

    @abstractmethod
    def add(self, rows: _Rows) -> None:
        """Write some rows."""

    @abstractmethod
    def finish(self) -> None:
        """No more rows come."""

    @abstractmethod
    def pieces(self) -> Iterator[_Rows]:
        """Yield all rows, some at a time."""

    def close(self) -> None:
        """Remove the file."""
        self.finish()
        self._folder.cleanup()


class ArrowSpool(Spool[pa.Table]):
    """Rows of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__("rows.parquet")
        self.schema = schema
        self.filled: set[str] = set()
        """Columns that have a value in some row."""
        self._writer: pq.ParquetWriter | None = pq.ParquetWriter(self.path, schema)

    def add(self, rows: pa.Table) -> None:
        assert self._writer is not None
        self._writer.write_table(rows, row_group_size=_GROUP)
        self.rows += len(rows)
        self.bytes += rows.nbytes
        columns = zip(rows.column_names, rows.columns, strict=True)
        self.filled |= {name for name, values in columns if values.null_count < len(values)}

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def pieces(self) -> Iterator[pa.Table]:
        self.finish()
        with pq.ParquetFile(self.path) as file:
            at_a_time = max(1, min(_GROUP, _PIECE_BYTES * self.rows // max(self.bytes, 1)))
            for batch in file.iter_batches(at_a_time):
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


class LineSpool(Spool[Sequence[str]]):
    """Records as lines of JSON, each as it was sent. All who read them must see the folder."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__("records.jsonl", folder)
        self._digest = 0
        self._file = self.path.open("wb")

    @property
    def digest(self) -> str:
        """Tells contents apart. The order of the lines does not count: pages may come in any."""
        return f"{self._digest:0{2 * _DIGEST_BYTES}x}"

    def add(self, rows: Sequence[str]) -> None:
        for row in rows:
            line = row.encode()
            hashed = int.from_bytes(blake2b(line, digest_size=_DIGEST_BYTES).digest(), "big")
            self._digest = (self._digest + hashed) % (1 << 8 * _DIGEST_BYTES)
            self._file.write(line + b"\n")
            self.bytes += len(line) + 1
        self.rows += len(rows)

    def finish(self) -> None:
        self._file.close()

    def pieces(self) -> Iterator[Sequence[str]]:
        self.finish()
        with self.path.open(encoding="utf-8", newline="\n") as lines:
            piece: list[str] = []
            size = 0
            for line in lines:
                piece.append(line.removesuffix("\n"))
                size += len(line)
                if len(piece) == _GROUP or size >= _PIECE_BYTES:
                    yield piece
                    piece, size = [], 0
            if piece:
                yield piece
