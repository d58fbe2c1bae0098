"""Which files a pipeline has loaded: `<table>__files`, a table beside the table.

A million paths would not fit into a table property. So the paths of a batch are written here *before*
the batch is published, and the ledger names the batch. Each batch names the one before it: the batches
that count are those on the chain that begins at the ledger. Rows of a batch that was never published
are on no chain, whoever wrote them and whenever, and mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.compat import from_arrow, to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.create import NewTable, create
from esker.engine.iceberg.stage import StagedFiles, stage
from esker.engine.iceberg.table import TABLE_DEFAULTS, TableId, exists
from esker.engine.session import Engine
from esker.errors import LoadedFilesDamaged
from esker.ledger.append_once import append_once
from esker.ledger.file_record import chain_of, newest, read_record
from esker.ledger.file_versions import Compared, FileVersion, compare
from esker.ledger.upkeep import KEPT_FOR, MANY_FILES, put_together
from esker.project.types import Column, Plain

_SPARE = 20
"""Batches of a pipeline that do not count and are kept, however old they are."""
_COLUMNS = (
    Column("pipeline", Plain("string"), required=True),
    Column("batch", Plain("string"), required=True, doc="The batch that loaded the file"),
    Column("previous", Plain("string"), doc="The batch before it; null for the first"),
    Column("path", Plain("string"), required=True),
    Column("size", Plain("bigint"), required=True),
    Column("modified", Plain("bigint"), required=True, doc="Modification time, nanoseconds since 1970"),
    Column("run", Plain("string"), required=True),
    Column("written_at", Plain("timestamp"), required=True),
)
_ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string(), nullable=False),
        pa.field("batch", pa.string(), nullable=False),
        pa.field("previous", pa.string()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified", pa.int64(), nullable=False),
        pa.field("run", pa.string(), nullable=False),
        pa.field("written_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_LISTED = pa.schema([_ARROW.field(name) for name in ("path", "size", "modified")])


@dataclass(frozen=True)
class LoadedFiles:
    """The files that one pipeline has loaded."""

    engine: Engine
    table: TableId
    pipeline: str

    def compare(self, batch: str | None, listed: Sequence[FileVersion]) -> Compared:
        """Compare files with those that a batch and all before it have loaded.

        Spark compares: what has been loaded does not come here, only what differs from it. Raises
        LoadedFilesDamaged when a batch on the chain is not recorded.
        """
        if batch is None:
            return Compared(frozenset(file.path for file in listed), {})
        if (history := self._in_memory()) is not None:
            return compare(newest(history, batch, self.table), listed)
        with explained(f'cannot read table "{self.table}"', self.engine.log):
            loaded = self._on_chain(batch).withColumn("then", F.struct("size", "modified"))
            now = from_arrow(self.engine.spark, pa.Table.from_pylist([vars(f) for f in listed], _LISTED))
            seen = (
                now.select("path", F.struct("size", "modified").alias("now"))
                .join(loaded.select("path", "place", "then"), "path", "left")
                .groupBy("path", "now")
                .agg(F.max_by("then", "place").alias("then"))
                .where(~F.col("then").eqNullSafe(F.col("now")))
            )
            rows = to_arrow(seen.select("path", "then.size", "then.modified")).to_pylist()
        fresh = frozenset(row["path"] for row in rows if row["size"] is None)
        return Compared(fresh, {row["path"]: FileVersion(**row) for row in rows if row["path"] not in fresh})

    def upto(self, batch: str | None) -> Mapping[str, FileVersion]:
        """Return all files of a batch and of those before it, by path, as they were loaded last."""
        if batch is None:
            return {}
        if (history := self._in_memory()) is not None:
            return newest(history, batch, self.table)
        with explained(f'cannot read table "{self.table}"', self.engine.log):
            last = F.max_by(F.struct("size", "modified"), "place").alias("last")
            found = self._on_chain(batch).groupBy("path").agg(last)
            rows = to_arrow(found.select("path", "last.size", "last.modified")).to_pylist()
        return {row["path"]: FileVersion(**row) for row in rows}

    def _in_memory(self) -> pa.Table | None:
        """Return what this pipeline has written here, read by this process; None where Spark must.

        For most projects that is some files of a few thousand rows: a Spark job would take longer.
        """
        if not exists(self.engine, self.table):
            return None
        try:
            return read_record(Attempt(self.engine, self.table), self.pipeline)
        except (SwapFailed, FileNotFoundError):
            return None  # expired meanwhile: Spark looks again

    def _on_chain(self, batch: str) -> DataFrame:
        """Return the rows of the batches that count, with their batch's place in the chain."""
        if not exists(self.engine, self.table):
            raise LoadedFilesDamaged(str(self.table), batch)
        own = self.engine.spark.table(self.table.sql).where(F.col("pipeline") == self.pipeline)
        chain = chain_of(to_arrow(own.select("batch", "previous").distinct()), batch, self.table)
        return own.join(F.broadcast(from_arrow(self.engine.spark, chain)), "batch")

    def record(self, files: Iterable[FileVersion], *, batch: str, previous: str | None, run: str) -> bool:
        """Write down the files of a batch. It counts once the ledger names the batch.

        Return whether the record has so many files that they should be put together after the publish.
        """
        if not exists(self.engine, self.table):
            create(self.engine, NewTable(self.table, _COLUMNS, (), TABLE_DEFAULTS))
        now = datetime.now(UTC)
        rows = [
            {
                "pipeline": self.pipeline,
                "batch": batch,
                "previous": previous,
                "path": file.path,
                "size": file.size,
                "modified": file.modified,
                "run": run,
                "written_at": now,
            }
            for file in files
        ]
        staged = self._stage(pa.Table.from_pylist(rows, schema=_ARROW), batch)
        summary = {"esker.pipeline": self.pipeline, "esker.run": run}
        return append_once(self.engine, staged, batch, summary) >= MANY_FILES

    def put_together(self, published: Callable[[], str | None]) -> None:
        """Put the files of the record together. `published` reads the batch that the ledger names.

        It is asked once the record is read: whoever was overtaken, and wakes hours after its publish, would
        take the batches of its successors for some that were never published.
        Batches that are not on its chain were never published, or a complete one took their place. They
        mean nothing, unless somebody goes back to an earlier state: the newest of them are kept.
        """

        def counted(rows: pa.Table, is_whole: bool) -> pa.Table:
            batch = published() if is_whole else None
            kept = self._without_old(rows, batch) if batch is not None else rows
            return kept.sort_by([("pipeline", "ascending"), ("path", "ascending")])

        put_together(self.engine, self.table, counted)

    def _without_old(self, rows: pa.Table, published: str) -> pa.Table:
        own = rows.filter(pc.equal(rows["pipeline"], self.pipeline))
        links = own.group_by(["batch", "previous"]).aggregate([("written_at", "max")])
        chain = chain_of(links, published, self.table)["batch"].combine_chunks()
        spare = links.filter(pc.invert(pc.is_in(links["batch"], value_set=chain)))
        spare = spare.sort_by([("written_at_max", "descending")]).slice(_SPARE)
        before = pa.scalar(datetime.now(UTC) - KEPT_FOR, spare["written_at_max"].type)
        old = spare.filter(pc.less(spare["written_at_max"], before))["batch"].combine_chunks()
        return rows.filter(pc.invert(pc.is_in(rows["batch"], value_set=old)))

    def _stage(self, rows: pa.Table, batch: str) -> StagedFiles:
        attempt = Attempt(self.engine, self.table)
        if attempt.schema.arrow.names == _ARROW.names:
            return attempt.write(rows, f"files-{uuid4()}")
        frame = from_arrow(self.engine.spark, rows).coalesce(1)
        return stage(self.engine, self.table, frame, f"files-{batch}")
