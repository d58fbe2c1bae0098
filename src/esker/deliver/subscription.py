"""A consumer with the table whose changes it reads, and what is delivered to it in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from esker.changes.since import NOT_CONTINUED
from esker.engine.iceberg.table_id import TableId
from esker.errors import DeliveryRefused, ReindexNeeded
from esker.ledger.change_columns import CHANGESET, OP, ROW
from esker.ledger.offsets import Offset
from esker.project.consumers import Consumer
from esker.project.pipelines import Pipeline
from esker.project.reserved import is_own
from esker.project.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

    def check_numbers(self, format_version: int) -> None:
        """Raise DeliveryRefused for a table whose snapshots have no numbers.

        Rows of all its snapshots would have the same version: the first of an id would stay for good.
        """
        if format_version < 2:
            raise DeliveryRefused(
                self.name,
                f'Table "{self.table}" is of format version 1: its snapshots have no sequence numbers, and '
                "nothing tells which row of an id is newer.",
                f"Write format_version: 2 into the pipeline, then: esker plan {self.consumer.source} --apply",
            )

    @contextmanager
    def or_reindex(self) -> Iterator[None]:
        """Ask for a reindex where the changes after an offset cannot be read."""
        try:
            yield
        except NOT_CONTINUED as error:
            why = f"{error.message[0].upper()}{error.message[1:]}. {error.reason}"
            raise ReindexNeeded(self.name, why) from error

    def live(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the table that are neither deleted nor of the past."""
        from esker.ledger.live_rows import live  # noqa: PLC0415 (PySpark)

        return live(self.pipeline, rows)

    def is_shown(self, column: str) -> bool:
        """Tell whether transforms see a column: not Esker's own, nor the mark of deleted rows."""
        is_mark = self.pipeline.keeps_deleted and column.lower() == self.pipeline.deleted_column.lower()
        return not is_own(column) and not is_mark

    def changes(self, rows: pa.Table, since: int, until: int) -> pa.Table:
        """Return the changes of a range as transforms see them, with CHANGE, from rows of the change log."""
        number = rows.column(CHANGESET)
        rows = rows.filter(pc.and_(pc.greater(number, since), pc.less_equal(number, until)))
        if self.pipeline.mode == "scd2":
            # A version that was put between others is no news: they know a newer one.
            current = pc.fill_null(rows.column(self.pipeline.versions.is_current), False)
            rows = rows.filter(pc.or_(pc.equal(rows.column(OP), "delete"), current))
        return rows.select([*CHANGE, *(name for name in rows.column_names if self.is_shown(name))])

    def newest(self, rows: DataFrame) -> DataFrame:
        """Return the newest change of each row."""
        from pyspark.sql import Window  # noqa: PLC0415
        from pyspark.sql import functions as F  # noqa: PLC0415

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
