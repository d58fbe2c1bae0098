"""Which files a pipeline has loaded: `<table>__files`, a table beside the table.

A million paths would not fit into a table property. So the paths of a batch are written here *before*
the batch is published, and the ledger names the batch. Each batch names the one before it: the batches
that count are those on the chain that begins at the ledger. Rows of a batch that was never published
are on no chain, whoever wrote them and whenever, and mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import functions as F

from esker.engine.compat import from_arrow, to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.stage import stage
from esker.engine.iceberg.table import TABLE_DEFAULTS, NewTable, TableId, create, exists
from esker.engine.session import Engine
from esker.errors import LoadedFilesDamaged, PublishConflict
from esker.project.types import Column, Plain

_TRIES = 20
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


@dataclass(frozen=True)
class FileVersion:
    """A file as it was when it was loaded: another size or time is another version."""

    path: str
    size: int
    modified: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.modified / 1e9, UTC)
        return f"{self.size} bytes of {moment:%Y-%m-%d %H:%M:%S.%f}"


@dataclass(frozen=True)
class LoadedFiles:
    """The files that one pipeline has loaded."""

    engine: Engine
    table: TableId
    pipeline: str

    def upto(self, batch: str | None) -> Mapping[str, FileVersion]:
        """Return the files of a batch and all before it, by path; the newest version of each.

        Raises LoadedFilesDamaged when a batch on the chain is not recorded.
        """
        if batch is None:
            return {}
        if not exists(self.engine, self.table):
            raise LoadedFilesDamaged(str(self.table), batch)
        with explained(f'cannot read table "{self.table}"', self.engine.log):
            own = self.engine.spark.table(self.table.sql).where(F.col("pipeline") == self.pipeline)
            links = own.select("batch", "previous").distinct().collect()
            order = self._chain({link.batch: link.previous for link in links}, batch)
            rows = to_arrow(own.select("batch", "path", "size", "modified"))
        newest: dict[str, tuple[int, FileVersion]] = {}
        for batches in rows.to_batches():
            columns = [batches.column(name).to_pylist() for name in ("batch", "path", "size", "modified")]
            for written_by, path, size, modified in zip(*columns, strict=True):
                at = order.get(written_by)
                if at is not None and (path not in newest or newest[path][0] < at):
                    newest[path] = (at, FileVersion(path, size, modified))
        return {path: version for path, (_, version) in newest.items()}

    def record(self, files: Iterable[FileVersion], *, batch: str, previous: str | None, run: str) -> None:
        """Write down the files of a batch. It counts once the ledger names the batch."""
        create(
            self.engine,
            NewTable(self.table, _COLUMNS, (), TABLE_DEFAULTS),
        )
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
        frame = from_arrow(self.engine.spark, pa.Table.from_pylist(rows, schema=_ARROW)).coalesce(1)
        staged = stage(self.engine, self.table, frame, f"files-{batch}")
        failure: SwapFailed | None = None
        for _ in range(_TRIES):
            attempt = Attempt(self.engine, self.table)
            if failure and attempt.last_snapshot_with("esker.batch", batch) is not None:
                return  # the answer was lost, the commit was not
            attempt.append(staged, {"esker.batch": batch, "esker.pipeline": self.pipeline, "esker.run": run})
            try:
                attempt.swap()
            except SwapFailed as error:
                failure = error
            else:
                return
        raise PublishConflict(str(self.table), _TRIES, str(failure))

    def _chain(self, previous: Mapping[str, str | None], batch: str) -> dict[str, int]:
        """Return the batches that count, each with its place: higher is newer."""
        chain: list[str] = []
        at: str | None = batch
        while at is not None:
            if at not in previous:
                raise LoadedFilesDamaged(str(self.table), at)
            chain.append(at)
            at = previous[at]
        return {name: len(chain) - index for index, name in enumerate(chain)}
