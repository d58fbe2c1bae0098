"""A query on the project's tables as a source.

Its position is the snapshot of each table that it reads: as long as these are the newest ones, there is
nothing to do.
"""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from esker.engine.failures import SQL_MISTAKES, explained, place_of, said_of_sql
from esker.engine.query import query_frame, snapshots_read
from esker.errors import QueryRefused
from esker.ledger.entry import Position
from esker.project.sources import QuerySource
from esker.sources.frames import FrameReader, Rows
from esker.sources.source import Opening, Slice
from esker.sources.span import Span

_MOVES = re.compile(
    r"\b(current_(date|timestamp|time)|localtimestamp|curdate|now|unix_timestamp|rand|randn|random|randstr"
    r"|uniform|shuffle|uuid)\b",
    re.IGNORECASE,
)
"""What answers differently each time, whatever the tables hold."""


class QueryReader(FrameReader):
    """Reads what a query returns."""

    def __init__(self, opening: Opening, source: QuerySource, span: Span | None = None) -> None:
        super().__init__(opening, span)
        self._source = source

    @classmethod
    def of(cls, opening: Opening) -> QueryReader:
        source = opening.pipeline.source
        assert isinstance(source, QuerySource)
        return cls(opening, source)

    def again(self, span: Span) -> QueryReader | None:
        return QueryReader(self._opening, self._source, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        engine = self._opening.engine
        catalog = engine.project.catalog_name(self._opening.pipeline.catalog)
        for name in engine.project.catalogs():
            engine.open_catalog(name)
        with explained("cannot run the source's query", engine.log, reads_source=True):
            try:
                frame = query_frame(engine, catalog, self._source.sql)
            except SQL_MISTAKES as error:
                raise self._refused(error) from error
            states = None if _MOVES.search(self._source.sql) else snapshots_read(frame)
        # What else it reads may have changed unseen.
        end = {"snapshots": states, "query": self._source.digest} if states else None
        if end is not None and position == end and self._span is None:
            return []
        return [self._piece(position, end or position, "what a query returns", Rows(frame))]

    def _refused(self, error: PySparkException) -> QueryRefused:
        line, column = place_of(error) or (0, 0)
        line -= 1  # it stands in brackets, a line below the first
        lines = self._source.sql.splitlines()
        place = f"line {line}, column {column}" if 0 < line <= len(lines) else ""
        return QueryRefused(self._opening.name, place, said_of_sql(error))
