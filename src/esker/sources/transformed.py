"""A source's rows as the pipeline's transform makes them, before they are checked.

Each row is made from one of the source's, so that its origin, its place among the others, and what is wrong
with a record that cannot be parsed stay with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.row_by_row import NotRowByRow, selected
from esker.engine.session import Engine
from esker.errors import TransformRefused
from esker.ledger.entry import Position
from esker.project.secrets import redact
from esker.project.transform import Transform
from esker.project.types import Column, Plain, as_text, columns_from_json, ddl, quoted
from esker.sources.source import MALFORMED, ORIGIN, RECORD, UNTIL, Fetched, Reader, Sent, Slice, Weight
from esker.sources.span import Span

_BESIDE = (ORIGIN, MALFORMED, RECORD, UNTIL)
_TOLD = 400


class TransformedReader(Reader):
    """Reads a source through a transform."""

    def __init__(self, engine: Engine, name: str, transform: Transform, source: Reader) -> None:
        self._engine, self._name, self._transform, self._source = engine, name, transform, source
        self._inputs: dict[str, Sent] = {}
        """What the source sends, by slice: all slices that are planned together have the same columns."""

    def plan(self, position: Position | None) -> list[Slice]:
        return self._source.plan(position)

    def fetch(self, slices: list[Slice]) -> Fetched:
        return self._source.fetch(slices)

    def newest(self) -> Slice | None:
        return self._source.newest()

    def again(self, span: Span) -> Reader | None:
        return self._through(self._source.again(span))

    def by_ids(self, ids: Sequence[str]) -> Reader | None:
        return self._through(self._source.by_ids(ids))

    def check(self, slices: Sequence[Slice]) -> None:
        self._source.check(slices)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        """Return the columns that the transform makes. Raises TransformRefused."""
        given = self._source.sent(slices)
        self._inputs |= {piece.id: given for piece in slices}
        if not given.columns:
            return given
        found: dict[str, Column] = {}
        for piece in slices:
            made = columns_from_json(self._made(piece).schema.jsonValue())
            found |= {column.name: column for column in made if column.name not in _BESIDE}
        if given.mark is not None and given.mark.lower() not in (name.lower() for name in found):
            why = f'It leaves out column "{given.mark}", by which the source says that a row is gone.'
            raise TransformRefused(self._name, why)
        columns = tuple(Column(column.name, column.type) for column in found.values())
        return Sent(columns, is_text=given.is_text)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        if piece.id not in self._inputs:
            self._inputs[piece.id] = self._source.sent([piece])
        made = self._made(piece)
        if not self._inputs[piece.id].is_text:
            return made
        # What was computed goes the way of what was sent: as text, of which each value is parsed exactly.
        texts = {
            column.name: F.col(quoted(column.name)).cast(ddl(as_text(column.type)))
            for column in columns_from_json(made.schema.jsonValue())
            if column.name not in _BESIDE
            and column.type not in (Plain("binary"), Plain("string"), Plain("void"))
        }
        return made.withColumns(texts)

    def weight(self, piece: Slice) -> Weight:
        # A row may become several, or none, and about as many bytes.
        return Weight(bytes=self._source.weight(piece).bytes)

    def confirm(self, piece: Slice) -> None:
        self._source.confirm(piece)

    def record(self, piece: Slice, run: str) -> None:
        self._source.record(piece, run)

    def published(self, piece: Slice) -> None:
        self._source.published(piece)

    def settled(self, piece: Slice) -> None:
        self._source.settled(piece)

    def close(self) -> None:
        self._source.close()

    def _through(self, source: Reader | None) -> Reader | None:
        if source is None:
            return None
        return TransformedReader(self._engine, self._name, self._transform, source)

    def _made(self, piece: Slice) -> DataFrame:
        given = self._inputs[piece.id]
        if not given.columns:
            # There are no rows, or none that could be read: nothing to make others from.
            rows = self._source.read(piece, ())
            return rows.select(*(name for name in _BESIDE if name in rows.columns))
        declared = {column.name.lower(): column for column in self._transform.declared_input()}
        sent = {column.name.lower(): column for column in given.columns}
        # Of JSON, the declared type says how a value is read; other sources have types of their own.
        wanted = {**sent, **declared} if given.is_text else {**declared, **sent}
        rows = self._source.read(piece, tuple(wanted.values()))
        there = {name.lower() for name in rows.columns}
        lacking = {
            column.name: F.lit(None).cast(ddl(as_text(column.type) if given.is_text else column.type))
            for name, column in declared.items()
            if name not in there
        }
        rows = rows.withColumns(lacking)
        beside = [name for name in _BESIDE if name in rows.columns]
        kept = MALFORMED if MALFORMED in beside else None
        try:
            return selected(self._engine, rows, self._transform.sql, beside, kept)
        except NotRowByRow as error:
            why = f"It is no plain SELECT … FROM input [WHERE …], but has {error} in it."
            raise TransformRefused(self._name, why) from error
        except PySparkException as error:
            names = ", ".join(name for name in rows.columns if name not in _BESIDE)
            why = f"{redact(str(error)).partition('JVM stacktrace')[0].strip()[:_TOLD]} (input has: {names})"
            raise TransformRefused(self._name, why) from error
