"""Rows that can be had in several forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from esker.errors import ReaderNotInstalled, StoreUnreachable

if TYPE_CHECKING:
    import polars
    from pyspark.sql import DataFrame


class Readable(ABC):
    """Rows of a table, read when they are asked for: as Arrow or Polars in this process, or by Spark."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, some thousand at a time: memory does not grow with their number."""

    @abstractmethod
    def to_spark(self) -> DataFrame:
        """Return the rows as a Spark frame. Raises SparkNotInstalled without PySpark."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_polars(self) -> polars.DataFrame:
        """Return all rows as one Polars frame. Raises ReaderNotInstalled without Polars."""
        try:
            import polars  # noqa: PLC0415
        except ModuleNotFoundError:
            raise ReaderNotInstalled("polars", "esker[polars]") from None
        found = polars.from_arrow(self.to_arrow())
        assert isinstance(found, polars.DataFrame)
        return found


@contextmanager
def while_files_live(what: str) -> Iterator[None]:
    """Say of a file that is gone that somebody removed it meanwhile, and of a broken one what it is."""
    try:
        yield
    except FileNotFoundError as error:
        why = f"A file is gone, its snapshot was perhaps expired meanwhile: {error}"
        raise StoreUnreachable(what, why) from error
    except pa.ArrowInvalid as error:
        raise StoreUnreachable(what, f"The file is damaged (esker fsck tells more): {error}") from error
