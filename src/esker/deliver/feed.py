"""The changes of a table, as consumers read them: in order, from an offset on, a step at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.deliver.json_values import how_ids_are_written, id_of, key_texts
from esker.engine.compat import from_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import DeliveryRefused, ReindexUnsuitable
from esker.ledger.change_log import CHANGESET, OP, ROW
from esker.ledger.consumer_tags import move_tag
from esker.ledger.live_rows import live
from esker.ledger.offsets import Offset
from esker.project.consumers import Consumer
from esker.project.pipelines import Pipeline
from esker.project.reserved import is_own
from esker.project.types import quoted

CHANGE = (CHANGESET, OP, ROW)
"""Columns beside a row's own: its changeset, what was done, and its place among the changeset's changes."""

_ID_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


@dataclass(frozen=True)
class Subscription:
    """A consumer, and the table that it is told of."""

    name: str
    consumer: Consumer
    pipeline: Pipeline
    table: TableId

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.consumer.ids_of(self.pipeline)

    def check_ids(self, columns: pa.Schema) -> None:
        """Raise DeliveryRefused for an id of columns that cannot be looked for by their texts."""
        kinds = {field.name.lower(): field.type for field in columns}
        for name in self.ids:
            kind = kinds.get(name.lower())
            if kind is None:
                raise DeliveryRefused(
                    self.name, f'id: there is no column "{name}", or none that can be read.'
                )
            if not any(fits(kind) for fits in _ID_TYPES):
                why = f'id: column "{name}" is of type {kind}, whose texts differ from engine to engine.'
                raise DeliveryRefused(self.name, why)

    def live(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the table that are neither deleted nor of the past."""
        return live(self.pipeline, rows)

    def is_shown(self, column: str) -> bool:
        """Tell whether transforms see a column: not Esker's own, nor the mark of deleted rows."""
        is_mark = self.pipeline.keeps_deleted and column.lower() == self.pipeline.deleted_column.lower()
        return not is_own(column) and not is_mark

    def newest(self, rows: DataFrame) -> DataFrame:
        """Return the newest change of each row."""
        # In one changeset rows of an id may go and come: what came counts.
        order = [F.col(CHANGESET).desc(), F.col(OP) == "delete", F.col(ROW).desc()]
        number = F.row_number().over(Window.partitionBy(*map(quoted, self.ids)).orderBy(*order))
        return rows.withColumn("_esker_newest", number).where("_esker_newest = 1").drop("_esker_newest")


@dataclass(frozen=True)
class Step:
    """Changes that are delivered together."""

    until: Offset
    """Where the next step goes on."""
    changesets: int
    count: int
    """How many changes there are, at most."""
    rows: Callable[[], pa.Table] | None
    """Returns the changes with CHANGE, read by this process; None where it cannot read them."""
    frame: Callable[[ExitStack], DataFrame]
    """Returns the changes with CHANGE, read by Spark until the stack is closed."""


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
