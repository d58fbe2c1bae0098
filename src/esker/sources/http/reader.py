"""Read an API's records: by windows of time, or all of them in each run.

Either way the records are here, on the disk and as the API wrote them, before anything is loaded: an API
that fails half way has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.errors import SourceUnavailable
from esker.ledger.entry import Position
from esker.ledger.file_versions import FileVersion
from esker.ledger.run_id import new_run_id
from esker.project.sources import FilesSource, HttpSource
from esker.project.types import Column, Plain
from esker.sources.files.found import FoundFile
from esker.sources.files.jsonl import JsonLinesFormat
from esker.sources.http.api import Api
from esker.sources.restart import RESTARTS, Restart
from esker.sources.source import (
    MALFORMED,
    ORIGIN,
    RECORD,
    UNTIL,
    Fetched,
    Opening,
    Reader,
    Sent,
    Slice,
    Weight,
)
from esker.sources.span import Span
from esker.sources.spool import LineSpool
from esker.sources.windowed import WindowedReader

_LINES = FilesSource(path="records.jsonl", format="jsonl")
_DATED = rf'\{{"{UNTIL}": -?\d+(, )?'
"""How a record begins that has UNTIL in front."""


class HttpReader:
    """Opens readers of APIs."""

    @classmethod
    def of(cls, opening: Opening) -> Reader:
        source = opening.pipeline.source
        assert isinstance(source, HttpSource)
        api = Api(source, _folder(opening))
        if source.window is None:
            return WholeReader(opening, api)
        return WindowedRecords(opening, api, source.window)


class _Records:
    """Gives lines of JSON to Spark, as the files of a files source."""

    def __init__(self, opening: Opening, *, is_dated: bool = False) -> None:
        self._reads, self._engine = opening.pipeline.source.reads, opening.engine
        self._format = JsonLinesFormat(opening.engine.spark, _LINES, has_records=True)
        self._is_dated = is_dated
        """UNTIL stands in front of each record."""

    def check(self, spools: Sequence[LineSpool]) -> None:
        with explained("cannot look into the records", self._engine.log, reads_source=True):
            self._format.check([self._file(spool) for spool in spools])

    def sent(self, spools: Sequence[LineSpool]) -> Sent:
        with explained("cannot look into the records", self._engine.log, reads_source=True):
            sent = self._format.sent([self._file(spool) for spool in spools])
        return replace(sent, columns=tuple(column for column in sent.columns if column.name != UNTIL))

    def read(self, spool: LineSpool, columns: tuple[Column, ...]) -> DataFrame:
        if self._is_dated:
            columns = (*columns, Column(UNTIL, Plain("bigint")))
        with explained("cannot read the records", self._engine.log, reads_source=True):
            rows = self._format.read([self._file(spool)], columns).withColumn(ORIGIN, F.lit(self._reads))
        if not self._is_dated:
            return rows
        as_sent = {name: F.regexp_replace(name, _DATED, "{") for name in (MALFORMED, RECORD)}
        return rows.withColumns({**as_sent, UNTIL: F.timestamp_micros(F.col(UNTIL).cast("bigint"))})

    def weight(self, spool: LineSpool) -> Weight:
        return Weight(spool.rows, spool.bytes, is_text=True)

    def _file(self, spool: LineSpool) -> FoundFile:
        return FoundFile(FileVersion(self._reads, spool.bytes, 0), spool.path)


class WindowedRecords(WindowedReader):
    """Reads what is due of an API. Its position is what has been covered."""

    def check(self, slices: Sequence[Slice]) -> None:
        self._records.check([_windowed(piece) for piece in slices])

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return self._records.sent([_windowed(piece) for piece in slices])

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return self._records.read(_windowed(piece), columns)

    def arrow(self, piece: Slice, columns: tuple[Column, ...]) -> pa.Table | None:
        return None

    def weight(self, piece: Slice) -> Weight:
        return self._records.weight(_windowed(piece))

    @property
    def _records(self) -> _Records:
        return _Records(self._opening, is_dated=True)


class WholeReader(Reader):
    """Reads all that an API has. Its position tells what that was: the same again is not loaded again."""

    def __init__(self, opening: Opening, api: Api, span: Span | None = None) -> None:
        self._opening, self._api, self._span = opening, api, span
        self._records = _Records(opening)
        self._spool: LineSpool | None = None

    def again(self, span: Span) -> WholeReader | None:
        """Return a reader of everything; a part of it cannot be asked for."""
        return WholeReader(self._opening, self._api, span) if span.is_full else None

    def plan(self, position: Position | None) -> list[Slice]:
        summary = f"all of {self._opening.pipeline.source.reads}"
        return [Slice(position, position, new_run_id(), 0, summary, None)]

    def fetch(self, slices: list[Slice]) -> Fetched:
        spool = self._all()
        piece = slices[0]
        end: Position = {"records": spool.rows, "digest": spool.digest}
        if self._span is not None:
            end_or_same = piece.start  # what is read again does not move the position
        elif piece.start == end:
            return Fetched([])
        else:
            end_or_same = end
        return Fetched([self._held(piece, spool, end_or_same)])

    def newest(self) -> Slice | None:
        """Return the first page."""
        spool = self._fresh()
        pages = self._api.pages(None)
        for page in pages:
            spool.add(page)
            break
        spool.finish()
        return self._held(self.plan(None)[0], spool, None) if spool.rows else None

    def check(self, slices: Sequence[Slice]) -> None:
        self._records.check([piece.content for piece in slices])

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return self._records.sent([piece.content for piece in slices])

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return self._records.read(piece.content, columns)

    def weight(self, piece: Slice) -> Weight:
        return self._records.weight(piece.content)

    def close(self) -> None:
        with closing(self._api):
            if self._spool is not None:
                self._spool.close()

    def _all(self) -> LineSpool:
        """Bring all records here; from the beginning, when they change on the way."""
        for _ in range(RESTARTS):
            spool = self._fresh()
            try:
                for page in self._api.pages(None):
                    spool.add(page)
            except Restart as error:
                why = str(error)
            else:
                spool.finish()
                return spool
        raise SourceUnavailable(self._opening.pipeline.source.reads, why, RESTARTS)

    def _fresh(self) -> LineSpool:
        if self._spool is not None:
            self._spool.close()
        self._spool = self._api.spool()
        return self._spool

    def _held(self, piece: Slice, spool: LineSpool, end: Position | None) -> Slice:
        summary = f"{spool.rows} record{'' if spool.rows == 1 else 's'}"
        return replace(piece, end=end, bytes=spool.bytes, summary=summary, content=spool)


def _folder(opening: Opening) -> Path | None:
    """Return where records are kept: on a cluster in the project's folder, which all workers see."""
    project = opening.engine.project
    if project.spark.is_local:
        return None
    folder = project.folder / ".esker"
    folder.mkdir(exist_ok=True)
    return folder


def _windowed(piece: Slice) -> LineSpool:
    spool = piece.content.spool
    assert isinstance(spool, LineSpool)
    return spool
