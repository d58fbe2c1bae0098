"""Tables beside a table that are filled from its outbox: change log, quarantine, deletes, quality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.stage import StagedFiles, stage
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.engine.store import Store
from esker.ledger.owed import (
    DELETES,
    LOG,
    QUALITY,
    QUARANTINE,
    SIDES,
    Files,
    Named,
    Place,
    as_places,
    as_text,
    places_in,
)
from esker.ledger.stored_json import as_document
from esker.project.types import quoted

__all__ = [
    "DELETED_AT",
    "DELETES",
    "LOG",
    "QUALITY",
    "QUARANTINE",
    "SIDES",
    "Files",
    "OpenSide",
    "Place",
    "SideTable",
    "Stamp",
    "as_places",
    "as_text",
]

DELETED_AT = "_esker_deleted_at"
"""Column of the memory of deletes."""
_NAMED = 60
"""Bytes of names in an entry of the outbox; longer lists of files are written down in a file of their own."""


@dataclass(frozen=True)
class SideTable:
    """Which table it is, and how the table it stands beside knows it."""

    id: TableId
    uuid: str
    location: str
    property: str
    """Where the table names it: one of SIDES."""

    def place(self, name: str) -> str:
        """Return the location of one of its files."""
        return f"{self.location}/data/{name}"

    def registration(self) -> dict[str, str]:
        """Return the property by which the table knows it."""
        known = {"table": self.id.name, "uuid": self.uuid, "location": self.location}
        return {self.property: as_document(known)}

    @classmethod
    def registered(cls, properties: Mapping[str, str], name: str, catalog: str) -> SideTable | None:
        """Return the side table that a table names, if it names one, or raise LedgerUnreadable."""
        named = Named.by(properties, name)
        if named is None:
            return None
        return cls(TableId(catalog, named.table), named.uuid, named.location, name)

    def listed(self, store: Store, changeset: int, staged: StagedFiles) -> Files:
        """Return files for an entry of the outbox; many or long names are written down beside them."""
        # Only the last part: writers spell one location in several ways.
        places = tuple((location.rpartition("/")[2], size) for location, size in staged.places)
        if len(as_text(places)) <= _NAMED:
            return places
        # A Parquet file, too: buckets that are made for tables take no other.
        name = f"{changeset}-{uuid4().hex[:8]}-list.parquet"
        listed = pa.table({"name": [name for name, _ in places], "size": [size for _, size in places]})
        sink = pa.BufferOutputStream()
        pq.write_table(listed, sink)
        store.write_bytes(self.place(name), sink.getvalue())
        return name

    def places(self, store: Store, files: Files) -> tuple[Place, ...]:
        """Return the files of an entry, wherever they are written down."""
        if not isinstance(files, str):
            return files
        return places_in(store.read_bytes(self.place(files)))


@dataclass(frozen=True)
class Stamp:
    """What all rows that one batch leaves in side tables share."""

    pipeline: str
    run: str
    batch: str
    changeset: int
    moment: datetime

    def summary(self) -> dict[str, str]:
        """Return what a snapshot tells of it, beside pipeline, run and changeset."""
        return {"esker.batch": self.batch, "esker.moment": self.moment.isoformat()}


@dataclass(frozen=True)
class OpenSide(ABC):
    """A side table that is open: rows can be staged for it. They count once a publish has named them."""

    property: ClassVar[str]
    engine: Engine
    side: SideTable
    opened: Attempt

    @classmethod
    def of(cls, engine: Engine, table: TableId) -> Self:
        """Open a side table."""
        opened = Attempt(engine, table)
        return cls(engine, SideTable(table, opened.uuid, opened.location, cls.property), opened)

    @abstractmethod
    def shared(self, stamp: Stamp) -> dict[str, Any]:
        """Return the columns that are the same in all rows of a batch."""

    def stage(self, rows: pa.Table | DataFrame, stamp: Stamp) -> StagedFiles:
        """Write a batch's rows as files, from this process or with Spark. What they lack is null."""
        if isinstance(rows, DataFrame):
            return self._stage_frame(rows, stamp)
        shared = self.shared(stamp)
        columns = []
        for field in self.opened.schema.arrow:
            if field.name in shared:
                columns.append(pa.repeat(pa.scalar(shared[field.name], field.type), len(rows)))
            elif field.name in rows.column_names:
                columns.append(rows.column(field.name))
            else:
                columns.append(pa.nulls(len(rows), field.type))
        whole = pa.table(columns, names=self.opened.schema.arrow.names)
        return self.opened.write(whole, f"{stamp.changeset}-{uuid4().hex[:8]}")

    def _stage_frame(self, rows: DataFrame, stamp: Stamp) -> StagedFiles:
        shared = self.shared(stamp)
        columns = []
        for field in self.engine.spark.table(self.side.id.sql).schema.fields:
            if field.name in rows.columns:
                value = F.col(quoted(field.name))
            else:
                value = F.lit(shared.get(field.name)).cast(field.dataType)
            columns.append(value.alias(field.name))
        return stage(self.engine, self.side.id, rows.select(*columns), f"side-{uuid4()}")
