"""What every kind of source can do: plan slices beyond a position, and read one of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from esker.errors import EskerError
from esker.sources.span import Span

if TYPE_CHECKING:
    # Packages that offer a kind of source import this file whenever a project is read: no Spark is loaded
    # for that, and nothing of the project's models, which wait for these kinds.
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from esker.engine.iceberg.table_id import TableId
    from esker.engine.session import Engine
    from esker.ledger.entry import Position
    from esker.ledger.state import State
    from esker.project.pipelines import Pipeline
    from esker.project.types import Column

MALFORMED = "_esker_malformed"
"""Column of a read frame: why a record could not be parsed, in words with the record, else null."""

RECORD = "_esker_record"
"""Column of a read frame: the record that could not be parsed, as it stands in the source, else null."""

ORIGIN = "_esker_origin"
"""Column of a read frame: where the row came from, for messages."""

UNTIL = "_esker_until"
"""Column of a read frame: the last moment at which a row may have become what it is, where its source knows
one. A delete that does not say when it happened is as new as that."""


@dataclass(frozen=True)
class Opening:
    """What a reader is made with."""

    engine: Engine
    name: str
    """The pipeline's."""
    pipeline: Pipeline
    files_table: TableId
    """Where it may keep what is large."""
    state: State | None = None
    """The state database, for what is about work; None for whoever only looks."""


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
    is_repair: bool = False
    """It lies before what has been loaded already: what is stored wins against rows that are not newer."""
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
    untyped: tuple[str, ...] = ()
    """Columns of which nothing tells the types, where others have some."""
    is_loose: bool = False
    """One value may stand for a list of one, and a text for an element with attributes, as in XML."""
    mark: str | None = None
    """The column that is true for rows that are gone, of a source whose rows cannot be read without it."""


@dataclass(frozen=True)
class Fetched:
    """What of a plan could be brought here."""

    slices: list[Slice]
    failures: tuple[EskerError, ...] = ()
    """Why parts are missing. The slices' positions leave these parts out: a later run tries them again."""
    has_more: bool = False
    """There is more beyond these slices: once they are loaded, it is planned again."""
    notes: tuple[str, ...] = ()
    """What people should know, such as what of the source has to wait."""


class Reader(ABC):
    """How one source is read. Most can leave what follows `read` as it is here."""

    @abstractmethod
    def plan(self, position: Position | None) -> list[Slice]:
        """Return what lies beyond a position, in the order in which it is to be loaded. Reads no rows."""

    @abstractmethod
    def sent(self, slices: Sequence[Slice]) -> Sent:
        """Return the columns of these slices."""

    @abstractmethod
    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        """Return a slice's rows, with ORIGIN beside the columns that it sends, and MALFORMED where a
        record can be broken.

        `columns` are those of the table; a source that parses types itself parses to these.
        """

    def fetch(self, slices: list[Slice]) -> Fetched:
        """Bring here what Spark cannot read where it is. Called before the slices are looked into."""
        return Fetched(slices)

    def newest(self) -> Slice | None:
        """Return some of what is there now, loaded or not, ready for a person to look at."""
        fetched = self.fetch(self.plan(None)[:1])
        return fetched.slices[0] if fetched.slices else None

    def again(self, span: Span) -> Reader | None:
        """Return a reader of what lies in a span, loaded or not; None where it cannot be asked that way."""
        return None

    def by_ids(self, ids: Sequence[str]) -> Reader | None:
        """Return a reader of some records; None where they cannot be asked for one by one."""
        return None

    def check(self, slices: Sequence[Slice]) -> None:  # noqa: B027
        """Raise if something in these slices would be lost or changed unseen when they are read."""

    def values(self, slices: Sequence[Slice]) -> Mapping[str, Sequence[str]] | None:
        """Return the values of columns that come as text, without nulls, where this process has read them
        already or can do so at once; None when Spark reads them."""
        return None

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        """Return a slice's rows when they are in this process already; None when Spark reads them."""
        return None

    def weight(self, piece: Slice) -> Weight:
        """Return how much a slice is, without reading it."""
        return Weight()

    def confirm(self, piece: Slice) -> None:  # noqa: B027
        """Raise if the source changed under the slice while it was read."""

    def record(self, piece: Slice, run: str) -> None:  # noqa: B027
        """Write down what does not fit into the position, before the slice is published."""

    def published(self, piece: Slice) -> None:  # noqa: B027
        """Take note that the ledger says the position that a slice leads to."""

    def settled(self, piece: Slice) -> None:  # noqa: B027
        """Take note that a slice is in the table, or held nothing that is not."""

    def close(self) -> None:  # noqa: B027
        """Give back what is kept for the run: files on their way, connections."""
