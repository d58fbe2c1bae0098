"""A table of a database by windows of time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property

import pyarrow as pa

from esker.engine.compat import arrow_schema, to_arrow
from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.errors import NullCursor
from esker.project.sources import JdbcSource
from esker.sources.jdbc.database import Relation, unsuitable
from esker.sources.windowed import TimedSource
from esker.sources.windows import Window


class TimedTable(TimedSource):
    """A table or query whose cursor is a time. Without a zone, it is UTC."""

    def __init__(self, engine: Engine, source: JdbcSource) -> None:
        assert source.cursor is not None
        assert source.window is not None
        self._engine, self._source, self._cursor = engine, source, source.cursor
        self._window = source.window

    @cached_property
    def schema(self) -> pa.Schema:
        relation = self._relation()
        try:
            with explained("cannot look into the database", self._engine.log, reads_source=True):
                return arrow_schema(relation.frame().schema.jsonValue())
        finally:
            relation.close()

    def now(self) -> datetime:
        relation = self._relation()
        try:
            found = relation.clock()
        finally:
            relation.close()
        assert found is not None
        return found

    def earliest(self) -> datetime | None:
        relation = self._relation()
        try:
            column = relation.dialect.name(relation.column(self._cursor))
            seconds = relation.number(f"extract(epoch FROM min({column}))")
        finally:
            relation.close()
        return datetime.fromtimestamp(math.floor(seconds), UTC) if seconds is not None else None

    def check(self) -> None:
        relation = self._relation()
        try:
            column = relation.column(self._cursor)
            if not relation.dialect.is_time(column):
                raise unsuitable(
                    self._source,
                    column.name,
                    f"Its type is {column.type}, and windows are of time.",
                    "Name a column of type timestamp, timestamptz or date, or leave out window:.",
                )
            nulls = relation.nulls(column) if self._source.nulls == "error" else 0
        finally:
            relation.close()
        if nulls:
            raise NullCursor(self._source.reads, column.name, nulls)

    def pages(self, window: Window) -> Iterator[pa.Table]:
        # A snapshot for each window: one for all of them would be held for hours.
        relation = self._relation()
        try:
            column = relation.dialect.name(relation.column(self._cursor))
            inside = f"{column} >= '{_stamp(window.since)}' AND {column} < '{_stamp(window.until)}'"
            # A window that is halved at more than so many rows need not be read to its end.
            is_single = window.seconds - int(self._window.overlap.total_seconds()) <= 1
            limit = None if is_single else self._window.split_at + 1
            with explained("cannot read the database", self._engine.log, reads_source=True):
                yield to_arrow(relation.frame([inside], limit)).cast(self.schema)
        finally:
            relation.close()

    def _relation(self) -> Relation:
        return Relation(self._engine, self._source)


def _stamp(moment: datetime) -> str:
    # For a column without a zone PostgreSQL leaves out what stands after the time.
    return f"{moment:%Y-%m-%d %H:%M:%S}+00"
