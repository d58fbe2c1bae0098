"""What every kind of source can do: plan slices beyond a position, and read one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from esker.ledger.entry import Position
from esker.project.types import Column

MALFORMED = "_esker_malformed"
"""Column of a read frame: why a record could not be parsed, in words with the record, else null."""

RECORD = "_esker_record"
"""Column of a read frame: the record that could not be parsed, as it stands in the source, else null."""

ORIGIN = "_esker_origin"
"""Column of a read frame: where the row came from, for messages."""


@dataclass(frozen=True)
class Command:
    """What makes rows that a person wrote by a statement different from those of a source.

    They win, whatever their order value, and they are only right on the snapshot they were found on.
    """

    mark: str
    """The column that is true for rows that are to be deleted."""
    base: int | None
    """The table's snapshot when they were found; None for a table without rows."""


@dataclass(frozen=True)
class Slice:
    """One bounded piece of a source, with the position it leads to."""

    start: Position | None
    end: Position | None
    id: str
    """Unique to this slice."""
    bytes: int
    summary: str
    """In words, for people: `3 files, 12.4 kB`."""
    content: Any
    """What only the source itself understands."""
    pieces: int = 1
    """How many files, or the like, it is made of."""
    command: Command | None = None
    until: datetime | None = None
    """The moment up to which it reaches, where the source knows one. Never the clock."""


@dataclass(frozen=True)
class Weight:
    """How much a slice is once it is read and unpacked; None where nobody can tell."""

    rows: int | None = None
    bytes: int | None = None
    is_text: bool = False
    """The bytes are lines, as they are: each has at least a character and its end."""

    def may_exceed(self, rows: float) -> bool:
        """Tell whether there may be more rows than these."""
        if math.isinf(rows):
            return False
        if self.rows is not None:
            return self.rows > rows
        return not self.is_text or self.bytes is None or self.bytes > 2 * rows


@dataclass(frozen=True)
class Sent:
    """The columns that a source sends."""

    columns: tuple[Column, ...]
    is_text: bool = False
    """Plain values are read as text, and each is parsed as its column's type."""
    is_untyped: bool = False
    """Nothing tells the types; they are found out from the values."""
    is_exact: bool = False
    """Names are matched letter by letter: another case is another name."""


class Reader(Protocol):
    """How one source is read."""

    @property
    def fingerprint(self) -> str:
        """Tells sources apart whose positions mean different things."""

    def plan(self, position: Position | None) -> list[Slice]:
        """Return what lies beyond a position, in the order in which it is to be loaded."""

    def newest(self) -> Slice | None:
        """Return some of what is there now, loaded or not, for a person to look at."""

    def check(self, slices: Sequence[Slice]) -> None:
        """Raise if something in these slices would be lost or changed unseen when they are read."""

    def sent(self, slices: Sequence[Slice]) -> Sent:
        """Return the columns of these slices."""

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        """Return a slice's rows, with ORIGIN beside the columns that it sends, and MALFORMED where a
        record can be broken.

        `columns` are those of the table; a source that parses types itself parses to these.
        """

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        """Return a slice's rows when they are in this process already; None when Spark reads them."""

    def weight(self, piece: Slice) -> Weight:
        """Return how much a slice is, without reading it."""

    def confirm(self, piece: Slice) -> None:
        """Raise if the source changed under the slice while it was read."""

    def record(self, piece: Slice, run: str) -> None:
        """Write down what does not fit into the position, before the slice is published."""
