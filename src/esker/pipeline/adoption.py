"""Adopt a table: look at it, say what would be added, and take it into a pipeline without rewriting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.catalogs.binding import local_location
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.schema import field_ids
from esker.engine.iceberg.table import Table, TableId, find_table
from esker.engine.session import Engine
from esker.engine.store import LOCAL
from esker.errors import AdoptionRefused, NotOfAPipeline, PipelineBusy, SourceNotFound, TableNotFound
from esker.ledger.change_log import ChangeLog
from esker.ledger.entry import read_entry, read_head
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.logged import look_at
from esker.ledger.run_id import new_run_id
from esker.ledger.side_table import SideTable
from esker.ledger.state import State
from esker.load.adoption import TakeOver, take_over
from esker.load.keys import check_key
from esker.load.standing import is_rewound
from esker.pipeline.alterations import alterations, creation, log_alterations, without_key
from esker.pipeline.table_changes import MapNames, TableChange, UpgradeTable
from esker.pipeline.tables import files_table_of, log_of, table_of
from esker.project import Pipeline
from esker.project.sources import FilesSource
from esker.project.types import Column, quoted
from esker.sources import Opening, Sent, reader
from esker.sources.files.found import FoundFile
from esker.sources.files.reader import FilesReader


@dataclass(frozen=True)
class Census:
    """What the rows are like that are adopted."""

    rows: int = 0
    keyless: int = 0
    """Rows that lack a part of their key: no batch will ever meet them."""
    duplicate_keys: int = 0
    """Keys that several rows have."""
    surplus: int = 0
    """Rows that would go if each key had one row."""


@dataclass(frozen=True)
class Adoption:
    """What adopting a table would do."""

    pipeline: str
    table: TableId
    mode: str
    changes: tuple[TableChange, ...]
    census: Census
    files: tuple[FoundFile, ...] = ()
    is_rewound: bool = False
    is_done: bool = False
    """The table is the pipeline's already, and nothing is to be added."""
    notes: tuple[str, ...] = ()
    snapshot_id: int | None = None
    """The snapshot that took the table over; None before that."""
    columns: tuple[Column, ...] = field(default=(), repr=False)

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "table": str(self.table),
            "mode": self.mode,
            "changes": [change.as_json() for change in self.changes],
            "files": [file.path for file in self.files],
            "rows": self.census.rows,
            "rows_without_key": self.census.keyless,
            "duplicate_keys": self.census.duplicate_keys,
            "surplus_rows": self.census.surplus,
            "rolled_back": self.is_rewound,
            "nothing_to_do": self.is_done,
            "snapshot_id": self.snapshot_id,
            "notes": list(self.notes),
        }


def plan_adoption(engine: Engine, table: TableId, pattern: str | None = None) -> Adoption:
    """Look at a table, and at Parquet files for it, and return what adopting would do. Nothing is changed.

    Raises NotOfAPipeline, TableNotFound, AdoptionRefused, UnsuitableKey, TypeConflict or ColumnsFrozen.
    """
    name = _pipeline_of(engine, table)
    pipeline = engine.project.pipeline(name)
    engine.open_catalog(table.catalog)
    present = find_table(engine, table)
    if present is None and pattern is None:
        raise TableNotFound(str(table), [])
    files, source = _files(engine, name, pipeline, pattern) if pattern is not None else ((), None)
    sent = source.sent(source.plan(None)) if source is not None else Sent(())
    if present is None:
        altered = creation(pipeline, table, sent, name=name)
    else:
        altered = alterations(pipeline, present, sent, name=name)
    attempt = Attempt(engine, table) if present is not None else None
    rewound = attempt is not None and is_rewound(attempt)
    if files:
        home = present.location if present is not None else engine.bindings[table.catalog].warehouse
        if not LOCAL.can_reach(home):
            raise AdoptionRefused(
                str(table),
                f"The files lie on this machine, and the table in {home}: other engines could not read them.",
                "Load the files through the pipeline's source.",
            )
        _check_files(pipeline, present, attempt, files, rewound=rewound)
    changes = altered.changes
    if pipeline.is_keyed:
        check_key(pipeline, altered.columns)
        if present is not None and present.format_version < 2:
            changes = (UpgradeTable(table, 2), *changes)
        if pipeline.changes:
            log = log_of(engine.project, table)
            changes += log_alterations(pipeline, log, find_table(engine, log), altered.columns)
    if files:
        changes += (MapNames(table),)
    census = _census(engine, pipeline, present, files, altered.columns)
    if census.keyless or census.surplus:
        changes = without_key(changes)
    if files and census.keyless and any(c.required and c.name in pipeline.key for c in altered.columns):
        raise AdoptionRefused(
            str(table),
            f"{census.keyless:,} rows of the files have no value in their key, which the table requires.",
            "Load such files through the pipeline's source: rows without a key go to the quarantine.",
        )
    is_ours = attempt is not None and read_entry(attempt.properties, name) is not None and not rewound
    return Adoption(
        pipeline=name,
        table=table,
        mode=pipeline.mode,
        changes=changes,
        census=census,
        files=files,
        is_rewound=rewound,
        is_done=is_ours and not changes and not files,
        notes=(*altered.notes, *_notes(attempt, name, census, rewound=rewound, files=files)),
        columns=altered.columns,
    )


def apply_adoption(engine: Engine, state: State, adoption: Adoption) -> int:
    """Do what a plan says; return the snapshot that took the table over. Raises PipelineBusy."""
    project, table = engine.project, adoption.table
    pipeline = project.pipeline(adoption.pipeline)
    try:
        with held(state, f"{project.state_key}/{adoption.pipeline}"):
            for change in adoption.changes:
                change.apply(engine)
            log, logged = _log(engine, pipeline, table)
            run = new_run_id()
            fingerprint = pipeline.source.fingerprint
            places = [(local_location(file.location), file.version.size) for file in adoption.files]
            return take_over(
                engine, TakeOver(table, adoption.pipeline, fingerprint, run, logged, log, places)
            )
    except LeaseTaken as taken:
        raise PipelineBusy(adoption.pipeline, taken.holder) from None


def _pipeline_of(engine: Engine, table: TableId) -> str:
    project = engine.project
    for name, pipeline in project.pipelines.items():
        if table_of(project, pipeline) == table:
            return name
    raise NotOfAPipeline(str(table), [pipeline.table for pipeline in project.pipelines.values()])


def _files(
    engine: Engine, name: str, pipeline: Pipeline, pattern: str
) -> tuple[tuple[FoundFile, ...], FilesReader]:
    """Return the Parquet files of a pattern, after a look at their footers, and what reads them."""
    source = FilesSource(type="files", path=pattern, format="parquet", max_files=1_000_000)
    # Mode append: each file counts for itself, whatever the pipeline makes of its source.
    own = pipeline.model_copy(update={"source": source, "mode": "append"})
    if source.address is not None:
        raise AdoptionRefused(
            pipeline.table,
            "Only files on a disk can be taken in so far.",
            "Load them through the pipeline's source.",
        )
    found = reader(Opening(engine, name, own, files_table_of(engine.project, pipeline)))
    assert isinstance(found, FilesReader)
    files = found.matching()
    if not files:
        raise SourceNotFound(name, pattern, pattern)
    return files, found


def _check_files(
    pipeline: Pipeline,
    present: Table | None,
    attempt: Attempt | None,
    files: Sequence[FoundFile],
    *,
    rewound: bool,
) -> None:
    """Raise AdoptionRefused for files that cannot be taken in as they are."""
    table = pipeline.table
    if pipeline.partition_by or (present is not None and present.partition_fields):
        raise AdoptionRefused(
            table,
            "It is partitioned, and files that were not written for it may hold rows of several partitions.",
            "Load the files through the pipeline's source.",
        )
    ids = attempt.schema.ids if attempt is not None else {}
    for file in files:
        for name, number in field_ids(str(file.location)).items():
            if ids.get(name) != number:
                raise AdoptionRefused(
                    table,
                    f'File {file.path} says that column "{name}" has field id {number}: readers would take '
                    "it for another column of this table.",
                    "Write the file without field ids, or load it through the pipeline's source.",
                )
    if attempt is None:
        return
    head = read_head(attempt.properties)
    if pipeline.is_keyed and head is not None and (head.changeset or rewound):
        raise AdoptionRefused(
            table,
            "Its change log has begun: rows that came in as files would be missing there.",
            "Load the files through the pipeline's source, or with project.load.",
        )
    known = {file.path for file in attempt.files.data}
    if twice := [file.path for file in files if local_location(file.location) in known]:
        raise AdoptionRefused(
            table, f"{len(twice)} of the files are in it already, such as {twice[0]}.", "Name only others."
        )


def _census(
    engine: Engine,
    pipeline: Pipeline,
    present: Table | None,
    files: Sequence[FoundFile],
    columns: tuple[Column, ...],
) -> Census:
    """Count rows, and keys that are missing or stand there several times. Only key columns are read."""
    keys = [column.name for column in columns if column.name.lower() in {k.lower() for k in pipeline.key}]
    parts: list[DataFrame] = []
    with explained("cannot look at the rows", engine.log, reads_source=bool(files)):
        if present is not None:
            stored = engine.spark.read.table(present.id.sql)
            parts.append(stored.select(*(_column(stored, name) for name in keys)))
        if files:
            paths = [str(file.location) for file in files]
            read = engine.spark.read.option("mergeSchema", "true").parquet(*paths)
            parts.append(read.select(*(_column(read, name) for name in keys)))
        rows = reduce(DataFrame.unionAll, parts)
        if not keys or not pipeline.is_keyed:
            return Census(rows.count())
        lacking = reduce(Expression.__or__, (F.col(quoted(name)).isNull() for name in keys))
        counted = rows.groupBy(*(quoted(name) for name in keys)).count().withColumn("lacks", lacking)
        several = ~F.col("lacks") & (F.col("count") > 1)
        found = counted.agg(
            F.coalesce(F.sum("count"), F.lit(0)).alias("rows"),
            F.coalesce(F.sum(F.when(F.col("lacks"), F.col("count"))), F.lit(0)).alias("keyless"),
            F.count(F.when(several, 1)).alias("keys"),
            F.coalesce(F.sum(F.when(several, F.col("count") - 1)), F.lit(0)).alias("surplus"),
        ).first()
    assert found is not None
    return Census(found["rows"], found["keyless"], found["keys"], found["surplus"])


def _column(frame: DataFrame, name: str) -> Expression:
    present = next((have for have in frame.columns if have.lower() == name.lower()), None)
    return F.col(quoted(present)).alias(name) if present is not None else F.lit(None).alias(name)


def _notes(
    attempt: Attempt | None, name: str, census: Census, *, rewound: bool, files: Sequence[FoundFile]
) -> list[str]:
    notes = []
    if census.duplicate_keys:
        notes.append(
            f"{census.duplicate_keys:,} keys have several rows ({census.surplus:,} rows too many): the first "
            "batch that meets such a key leaves the newest row"
        )
    if census.keyless:
        notes.append(f"{census.keyless:,} rows have no value in their key: no batch will ever change them")
    if attempt is not None and rewound:
        notes.append(
            "the table was rolled back or replaced: it is taken as it is, the pipeline goes on where it was, "
            "and the change log gets a gap"
        )
    elif attempt is None or read_entry(attempt.properties, name) is None:
        notes.append("the next run reads the source from its beginning, and compares rows by their content")
    if files:
        notes.append("the files belong to the table then: expiry deletes those that it no longer needs")
    return notes


def _log(engine: Engine, pipeline: Pipeline, table: TableId) -> tuple[SideTable | None, int]:
    """Return the change log, which is there by now, and the last changeset in it."""
    if not pipeline.is_keyed or not pipeline.changes:
        return None, 0
    log = ChangeLog.of(engine, log_of(engine.project, table))
    return log.side, look_at(log.side, log.opened)
