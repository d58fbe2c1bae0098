"""The rows of a SQL statement, in the place of a pipeline's source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from esker.engine.statement import FILE, POSITION
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_from_json
from esker.sources.source import Command, Reader, Sent, Slice

MARK = "_esker_mark"
"""Column of a statement's rows: true for those that are to be deleted."""


@dataclass
class StatementRows(Reader):
    """Reads the rows of a statement. They are found anew with every plan: the table may have moved."""

    evaluate: Callable[[], tuple[DataFrame, int | None]]
    """Returns the rows, with MARK and perhaps their places, and the snapshot that they were found on."""
    only_adds: bool = False
    """The statement is an INSERT."""
    _frame: DataFrame | None = field(default=None, repr=False)

    @property
    def frame(self) -> DataFrame:
        assert self._frame is not None
        return self._frame

    def plan(self, position: Position | None) -> list[Slice]:
        self._frame, base = self.evaluate()
        command = Command(MARK, base)
        return [Slice(position, position, new_run_id(), 0, "rows of a statement", None, command=command)]

    def sent(self, slices: Sequence[Slice]) -> Sent:
        columns = columns_from_json(self.frame.drop(MARK, FILE, POSITION).schema.jsonValue())
        return Sent(tuple(Column(column.name, column.type) for column in columns))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return self.frame
