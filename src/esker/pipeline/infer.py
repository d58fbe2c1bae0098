"""Look at a pipeline's source and write a contract for it, ready to edit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from esker.contracts.check import check
from esker.contracts.draft import draft
from esker.contracts.evolution import find
from esker.contracts.inference import Misfit, find_misfits
from esker.contracts.profile import ColumnProfile, profile
from esker.contracts.rules import RowRules
from esker.engine.failures import explained
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import ContractExists, NoColumns
from esker.load.rejected import SIDE_COLUMNS
from esker.pipeline.plan import open_reader, typed
from esker.pipeline.tables import table_of
from esker.project import Pipeline
from esker.project.sources import FilesSource
from esker.project.types import Column, Plain, quoted
from esker.sources import ORIGIN, Sent, Slice
from esker.sources.files.line_of import line_of
from esker.sources.files.lines import named


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
    """Write a contract for what a pipeline's source holds now. Raises ContractExists or NoColumns."""
    project = engine.project
    pipeline = project.pipeline(name)
    shown = file or f"contracts/{name}.odcs.yaml"
    target = Path(project.path(shown))
    if target.exists() and not overwrite:
        raise ContractExists(shown)
    with closing(open_reader(engine, name)) as source:
        slices = source.fetch(source.plan(None)).slices
        table = table_of(project, pipeline)
        engine.open_catalog(table.catalog)
        sent = typed(engine, source, slices, pipeline, find_table(engine, table)) if slices else None
        if sent is None or not sent.columns:
            raise NoColumns(name, str(table))
        columns = tuple(Column(column.name, column.type, doc=column.doc) for column in sent.columns)
        with explained("cannot look into the source", engine.log, reads_source=True):
            names = [quoted(column.name) for column in columns]
            read = [source.read(piece, columns) for piece in slices]
            checked = (check(rows, columns, RowRules(), SIDE_COLUMNS, ()) for rows in read)
            fitted = (each.all_told().select(*names) for each in checked)
            whole = reduce(lambda one, other: one.unionByName(other), fitted)
            found = profile(whole, columns)
            misfits = _misfits(read, sent, _guessed(pipeline, columns))
        told = tuple(_placed(each, pipeline, slices, found) for each in misfits)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draft(name, pipeline.table, found, pipeline.key), encoding="utf-8")
    return Inferred(name, shown, found[0].rows, tuple(found), told)


def _guessed(pipeline: Pipeline, columns: tuple[Column, ...]) -> list[str]:
    """Return the columns that are text because of their values, and not because somebody says so."""
    declared = pipeline.declared_columns()
    return [c.name for c in columns if c.type == Plain("string") and find(declared, c.name) is None]


def _misfits(read: Sequence[DataFrame], sent: Sent, names: Sequence[str]) -> list[Misfit]:
    if not sent.is_text or not names:
        return []
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), read)
    return find_misfits(whole, names, ORIGIN)


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
