"""The rows of a SQL statement, in the place of a pipeline's source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.engine.statement import FILE, POSITION
from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column, columns_from_json
from esker.sources.source import Command, Sent, Slice, Weight

MARK = "_esker_mark"
"""Column of a statement's rows: true for those that are to be deleted."""


@dataclass
class StatementRows:
    """Reads the rows of a statement. They are found anew with every plan: the table may have moved."""

    fingerprint: str
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

    def newest(self) -> Slice | None:
        return self.plan(None)[0]

    def check(self, slices: Sequence[Slice]) -> None:
        pass

    def sent(self, slices: Sequence[Slice]) -> Sent:
        columns = columns_from_json(self.frame.drop(MARK, FILE, POSITION).schema.jsonValue())
        return Sent(tuple(Column(column.name, column.type) for column in columns))

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return self.frame

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        return None

    def weight(self, piece: Slice) -> Weight:
        return Weight()

    def confirm(self, piece: Slice) -> None:
        pass

    def record(self, piece: Slice, run: str) -> None:
        pass
