"""Look at a pipeline's source and write a contract for it, ready to edit."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from esker.contracts.check import check
from esker.contracts.draft import draft
from esker.contracts.profile import ColumnProfile, profile
from esker.contracts.rules import RowRules
from esker.engine.failures import explained
from esker.engine.iceberg.table import find_table
from esker.engine.session import Engine
from esker.errors import ContractExists, NoColumns
from esker.load.rejected import SIDE_COLUMNS
from esker.pipeline.plan import open_reader, typed
from esker.pipeline.tables import table_of
from esker.project.types import Column, quoted


@dataclass(frozen=True)
class Inferred:
    """A contract that was written."""

    pipeline: str
    file: str
    """Below the project's folder."""
    rows: int
    columns: tuple[ColumnProfile, ...]

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
            read = (source.read(piece, columns) for piece in slices)
            checked = (check(rows, columns, RowRules(), SIDE_COLUMNS, ()) for rows in read)
            fitted = (each.all_told().select(*names) for each in checked)
            whole = reduce(lambda one, other: one.unionByName(other), fitted)
            found = profile(whole, columns)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draft(name, pipeline.table, found, pipeline.key), encoding="utf-8")
    return Inferred(name, shown, found[0].rows, tuple(found))
