"""Look at a source's rows without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.pipeline.plan import open_reader
from esker.pipeline.tables_by_spark import as_mapping
from esker.sources import MALFORMED, ORIGIN, RECORD, UNTIL


@dataclass(frozen=True)
class Peeked:
    """Some rows of a source, as the source sends them."""

    pipeline: str
    columns: tuple[str, ...]
    rows: list[Mapping[str, Any]]
    origins: tuple[str, ...]
    """Where these rows come from, such as a file's name: mostly a small part of what is there."""
    whole: str
    """All that is there now, loaded or not, in words: `3 files`."""

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "columns": list(self.columns),
            "rows": [dict(r) for r in self.rows],
            "origins": list(self.origins),
            "whole": self.whole,
        }


def peek(engine: Engine, name: str, limit: int = 10) -> Peeked:
    """Return some of a source's rows; nothing is loaded, nothing is remembered."""
    with closing(open_reader(engine, name)) as source:
        piece = source.newest()
        if piece is None:
            return Peeked(name, (), [], (), "nothing")
        columns = source.sent([piece]).columns
        with explained("cannot read the source", engine.log, reads_source=True):
            found = source.read(piece, columns).drop(MALFORMED, RECORD, UNTIL).limit(limit).collect()
        rows = [dict(as_mapping(row)) for row in found]
        origins = dict.fromkeys(_named(row.pop(ORIGIN)) for row in rows)
        whole = ", ".join(each.summary for each in source.plan(None))
    return Peeked(name, tuple(column.name for column in columns), list(rows), tuple(origins), whole)


def _named(origin: str) -> str:
    return unquote(origin.rpartition("/")[2])
