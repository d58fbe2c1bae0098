"""Look at a source's rows without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.pipeline.plan import open_reader
from esker.pipeline.show import as_mapping
from esker.sources import MALFORMED, ORIGIN


@dataclass(frozen=True)
class Peeked:
    """Some rows of a source, as the source sends them."""

    pipeline: str
    columns: tuple[str, ...]
    rows: list[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "columns": list(self.columns),
            "rows": [dict(r) for r in self.rows],
        }


def peek(engine: Engine, name: str, limit: int = 10) -> Peeked:
    """Return some of a source's rows; nothing is loaded, nothing is remembered."""
    source = open_reader(engine, name)
    piece = source.newest()
    if piece is None:
        return Peeked(name, (), [])
    columns = source.sent([piece]).columns
    with explained("cannot read the source", engine.log, reads_source=True):
        rows = source.read(piece, columns).drop(MALFORMED, ORIGIN).limit(limit).collect()
    return Peeked(name, tuple(column.name for column in columns), [as_mapping(row) for row in rows])
