"""The changes of a table, as consumers read them: in order, from an offset on, a step at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.deliver.json_values import how_ids_are_written, id_of, key_texts
from esker.deliver.subscription import CHANGE, Step, Subscription
from esker.engine.compat import from_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import ReindexUnsuitable
from esker.ledger.consumer_tags import move_tag
from esker.ledger.offsets import Offset
from esker.project.types import quoted

__all__ = ["CHANGE", "Feed", "Step", "Subscription", "wanted_ids", "with_ids"]


def wanted_ids(engine: Engine, names: Sequence[str], ids: Sequence[str]) -> DataFrame:
    """Return ids as rows of texts, in columns of these names."""
    texts = [key_texts(id_, len(names)) for id_ in ids]
    columns = {
        name: pa.array([text[place] for text in texts], pa.string()) for place, name in enumerate(names)
    }
    return from_arrow(engine.spark, pa.table(columns))


def with_ids(rows: DataFrame, wanted: DataFrame, names: Sequence[str], how: str = "left_semi") -> DataFrame:
    """Return the rows that have one of these ids, or with `left_anti` the others."""
    same = [F.col(f"r.{quoted(name)}").cast("string") == F.col(f"w.{quoted(name)}") for name in names]
    return rows.alias("r").join(F.broadcast(wanted).alias("w"), same, how)


class Feed(ABC):
    """The changes of a table as they are now. Looked at anew for each delivery."""

    log: TableId
    """The table whose snapshots are the log: tags stand there."""

    def __init__(self, engine: Engine, subscription: Subscription) -> None:
        self.engine, self.subscription = engine, subscription

    @abstractmethod
    def head(self) -> Offset:
        """Return the offset of who has been told everything."""

    @abstractmethod
    def pinned(self) -> tuple[SnapshotId | None, Offset]:
        """Return a snapshot of the table, and the offset of who has been told all rows of it."""

    @abstractmethod
    def placed(
        self, rows: DataFrame, files: Sequence[FileEntry], offset: Offset, *, newest: bool
    ) -> DataFrame:
        """Return rows of files of a pinned snapshot with CHANGE, without those that are deleted.

        All of them, in no order, or only the `newest` of each id.
        """

    def check_order(self) -> None:
        """Raise DeliveryRefused where nobody can tell which of several rows of an id came last."""
        return

    @abstractmethod
    def standing(self, offset: Offset) -> DataFrame:
        """Return all rows that are there by now with CHANGE, as new as an offset."""

    @abstractmethod
    def beginning(self) -> Offset:
        """Return the offset of who has been told nothing. Raises ReindexNeeded."""

    @abstractmethod
    def tagged(self, snapshot: SnapshotId) -> Offset | None:
        """Return the offset that a tag on the log stands for."""

    @abstractmethod
    def check(self, offset: Offset) -> None:
        """Raise ReindexNeeded unless all changes behind an offset are there, and it is of this log."""

    @abstractmethod
    def steps(self, offset: Offset, rows: int) -> Iterator[Step]:
        """Yield the changes behind an offset, in steps of about so many rows."""

    @abstractmethod
    def newest_of(self, ids: Sequence[str], offset: Offset) -> DataFrame:
        """Return some rows as they were at an offset, with CHANGE; what is not there as a delete.

        A row that has changed since, and of which nobody knows how it was, is left out.
        """

    def ids_of_rows(self, ids: Sequence[str]) -> list[str]:
        """Return ids as rows have them: 7 for 007. Raises ReindexUnsuitable for one that no row can have.

        Taken as it is, 007 would be found nowhere, and row 7 told to be gone.
        """
        own = self.subscription
        try:
            given = wanted_ids(self.engine, own.ids, ids)
        except ValueError as error:
            raise ReindexUnsuitable(own.name, f"{error}.", how_ids_are_written(own.ids)) from None
        with explained(f'cannot read table "{own.table}"', self.engine.log):
            names = [quoted(name) for name in own.ids]
            kinds = [each.dataType for each in self.engine.spark.table(own.table.sql).select(*names).schema]
            casts = (
                f"try_cast({name} AS {kind.simpleString()})" for name, kind in zip(names, kinds, strict=True)
            )
            found = given.select(*(F.expr(cast).cast("string") for cast in casts)).collect()
            taken = [tuple(row) for row in found]
        for id_, row in zip(ids, taken, strict=True):
            if None in row:
                place = row.index(None)
                why = f'"{id_}": column "{own.ids[place]}" is of type {kinds[place].simpleString()}.'
                raise ReindexUnsuitable(own.name, why, how_ids_are_written(own.ids))
        return [id_of(*row) for row in taken]

    @property
    @abstractmethod
    def tag_names(self) -> dict[str, SnapshotId]:
        """The tags on the log, each with the snapshot that it names."""

    def tag(self, name: str, offset: Offset) -> None:
        """Let a tag say how far a consumer is. Where nobody knows the snapshot, it stays where it is."""
        if offset.snapshot is not None and self.tag_names.get(name) != offset.snapshot:
            move_tag(self.engine, self.log, name, offset.snapshot)

    def keep_all(self, name: str) -> bool:
        """Let a tag keep all changes for who has been told nothing; tell whether one is needed for that."""
        return False
