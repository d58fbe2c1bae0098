"""Look at a pipeline's source and write a contract for it, ready to edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.check import check
from esker.contracts.draft import draft
from esker.contracts.evolution import compare, find, is_widening, with_changes
from esker.contracts.inference import Misfit, find_misfits, infer_columns
from esker.contracts.profile import ColumnProfile, profile
from esker.contracts.rules import RowRules
from esker.engine.failures import explained
from esker.engine.iceberg.table import Table
from esker.engine.kept import KeptFrames
from esker.engine.session import Engine
from esker.errors import ContractExists, NoColumns, PartsMissing, UnsuitableData
from esker.ledger.entry import Position
from esker.load.rejected import SIDE_COLUMNS
from esker.pipeline.plan import open_reader, typed
from esker.pipeline.tables import table_of
from esker.pipeline.tables_by_spark import TablesBySpark
from esker.project import Pipeline
from esker.project.sources import FilesSource
from esker.project.types import Column, Decimal, Plain, Type, quoted
from esker.sources import ORIGIN, Reader, Sent, Slice
from esker.sources.files.formats import union
from esker.sources.files.line_of import line_of
from esker.sources.files.lines import named

_NUMBERS = {Plain(name) for name in ("int", "bigint", "float", "double")}


@dataclass(frozen=True)
class Inferred:
    """A contract that was written."""

    pipeline: str
    file: str
    """Below the project's folder."""
    rows: int
    columns: tuple[ColumnProfile, ...]
    misfits: tuple[Misfit, ...] = ()
    """Why columns are text, where most of their values would be something else."""

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "file": self.file,
            "rows": self.rows,
            "columns": [
                {
                    "name": each.column.name,
                    "type": str(each.column.type),
                    "required": each.is_required,
                    "unique": each.is_unique,
                    "values": [str(value) for value in each.values],
                    "personal": each.personal.kind if each.personal else None,
                }
                for each in self.columns
            ],
            "misfits": [asdict(each) for each in self.misfits],
        }


def infer_contract(
    engine: Engine, name: str, file: str | None = None, *, overwrite: bool = False
) -> Inferred:
    """Write a contract for all that a pipeline's source holds now.

    Raises ContractExists, NoColumns, or PartsMissing when some of it could not be had.
    """
    project = engine.project
    pipeline = project.pipeline(name)
    shown = file or f"contracts/{name}.odcs.yaml"
    target = Path(project.path(shown))
    if target.exists() and not overwrite:
        raise ContractExists(shown)
    table = table_of(project, pipeline)
    present = TablesBySpark(engine).find(table)
    kept = KeptFrames(engine)
    try:
        with closing(open_reader(engine, name)) as source:
            seen = list(_look(engine, name, source, present, kept))
            with explained("cannot look into the source", engine.log, reads_source=True):
                columns = _columns(pipeline, seen)
                if not columns:
                    raise NoColumns(name, str(table))
                names = [quoted(column.name) for column in columns]
                read = [rows for step in seen for rows in step.rows]
                checked = (check(rows, columns, RowRules(), SIDE_COLUMNS, ()) for rows in read)
                fitted = (each.all_told().select(*names) for each in checked)
                whole = union(list(fitted))
                found = profile(whole, columns)
                misfits = _misfits(seen, _guessed(pipeline, columns))
            # Copies of files are still here of the last step only.
            told = tuple(_placed(each, pipeline, seen[-1].slices, found) for each in misfits)
    finally:
        kept.let_go()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draft(name, pipeline.table, found, pipeline.key), encoding="utf-8")
    return Inferred(name, shown, found[0].rows, tuple(found), told)


@dataclass(frozen=True)
class _Step:
    """What a source gave at once: its columns, with types, and the rows as they were read."""

    sent: Sent
    untyped: tuple[str, ...]
    """Columns whose types were found in these rows alone."""
    rows: Sequence[DataFrame]
    slices: Sequence[Slice]


def _look(
    engine: Engine, name: str, source: Reader, present: Table | None, kept: KeptFrames
) -> Iterator[_Step]:
    """Yield all that a source holds. Raises PartsMissing: what cannot be had may be of another kind."""
    pipeline = engine.project.pipeline(name)
    known = (*pipeline.declared_columns(), *(present.columns if present else ()))
    position: Position | None = None
    has_more = True
    while has_more:
        fetched = source.fetch(source.plan(position))
        if fetched.failures:
            raise PartsMissing(name, fetched.failures)
        has_more = fetched.has_more
        if not fetched.slices:
            continue
        first = source.sent(fetched.slices)
        untyped = [c.name for c in first.columns] if first.is_untyped else list(first.untyped)
        sent = typed(engine, source, fetched.slices, pipeline, present)
        with explained("cannot look into the source", engine.log, reads_source=True):
            rows = [source.read(piece, sent.columns) for piece in fetched.slices]
            if has_more:
                # The source gives up what it holds of this step when it is asked for the next one.
                rows = [kept.keep(each, StorageLevel.DISK_ONLY) for each in rows]
                for each in rows:
                    each.count()
        guessed = tuple(each for each in untyped if find(known, each) is None)
        yield _Step(sent, guessed, rows, fetched.slices)
        for piece in fetched.slices if has_more else ():
            source.settled(piece)
            position = piece.end


def _columns(pipeline: Pipeline, seen: Sequence[_Step]) -> tuple[Column, ...]:
    """Return the columns of all steps, each with a type that its values have in all of them."""
    if len(seen) == 1:
        columns = seen[0].sent.columns
    else:
        merged: dict[str, Column] = {}
        for step in seen:
            for column in step.sent.columns:
                other = merged.get(column.name.lower(), column)
                merged[column.name.lower()] = replace(other, type=_wider(other, column))
        guessed = {name.lower(): name for step in seen for name in step.untyped}
        texts = (_texts(rows, list(guessed.values())) for step in seen for rows in step.rows)
        if guessed:
            whole = union(list(texts))
            inferred = infer_columns(whole, list(guessed.values()))
            merged |= {column.name.lower(): column for column in inferred}
        columns = tuple(merged.values())
    return tuple(Column(column.name, column.type, doc=column.doc) for column in columns)


def _wider(one: Column, other: Column) -> Type:
    """Return a type for the values of a column that came with two, or raise UnsuitableData."""
    if is_widening(other.type, one.type):
        return one.type
    if is_widening(one.type, other.type):
        return other.type
    if {one.type, other.type} <= _NUMBERS:
        return Plain("double")  # as if they had come together
    if isinstance(one.type, Plain | Decimal) and isinstance(other.type, Plain | Decimal):
        return Plain("string")
    differences = compare((one,), (other,), is_text=False)
    if differences.conflicts:
        why = "; ".join(differences.conflicts)
        raise UnsuitableData(f"Parts of the source have types that do not go together: {why}")
    return with_changes((one,), differences)[0].type


def _texts(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return some columns as texts, and where the rows come from; null for a column that is not there."""
    there = {name.lower() for name in rows.columns}
    texts = [
        (F.col(quoted(name)) if name.lower() in there else F.lit(None)).cast("string").alias(name)
        for name in names
    ]
    return rows.select(*texts, ORIGIN)


def _guessed(pipeline: Pipeline, columns: tuple[Column, ...]) -> list[str]:
    """Return the columns that are text because of their values, and not because somebody says so."""
    declared = pipeline.declared_columns()
    return [c.name for c in columns if c.type == Plain("string") and find(declared, c.name) is None]


def _misfits(seen: Sequence[_Step], names: Sequence[str]) -> list[Misfit]:
    texts = [_texts(rows, names) for step in seen if step.sent.is_text for rows in step.rows]
    if not names or not texts:
        return []
    return find_misfits(union(texts), names, ORIGIN)


def _placed(
    misfit: Misfit, pipeline: Pipeline, slices: Sequence[Slice], profiles: Sequence[ColumnProfile]
) -> Misfit:
    """Return a misfit with its line, where files have some, and without a value that is a person's."""
    if misfit.origin is not None and misfit.value is not None and isinstance(pipeline.source, FilesSource):
        files = [file for piece in slices for file in piece.content]
        path = named(misfit.origin, files)
        file = next((file for file in files if file.path in (path, misfit.origin)), None)
        if file is not None:
            line = line_of(file, pipeline.source, list(pipeline.columns), misfit.column, misfit.value)
            misfit = replace(misfit, origin=file.path, line=line)
    is_personal = any(each.personal for each in profiles if each.column.name == misfit.column)
    return replace(misfit, value=None) if is_personal else misfit
