"""Read files again, whether they have been loaded or not, without moving the position.

Which files a range of time means: where every file has a date in its path (`day=2026-11-03/`,
`2026/11/03/`, `orders_20261103.csv`), these dates count, because copying changes the time of a file;
else the times of modification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from esker.ledger.entry import Position
from esker.ledger.run_id import new_run_id
from esker.project.types import Column
from esker.sources.files.found import FoundFile
from esker.sources.source import Fetched, Reader, Sent, Slice, Weight
from esker.sources.span import Span

if TYPE_CHECKING:
    from esker.sources.files.reader import FilesReader

_DATE = re.compile(
    r"(?<!\d)((?:19|20)\d\d)[-_/]?(?:month=)?(0[1-9]|1[0-2])[-_/]?(?:day=)?(0[1-9]|[12]\d|3[01])(?!\d)"
)


@dataclass(frozen=True)
class FilesAgain(Reader):
    """Reads files of a span. Its slices begin and end at the position that there is, and record nothing."""

    reader: FilesReader
    span: Span
    done: set[str] = field(default_factory=set)
    """Paths of files that are loaded: no position says so."""

    def plan(self, position: Position | None) -> list[Slice]:
        files, how = self._chosen()
        files = [file for file in files if file.path not in self.done]
        if not files:
            return []
        parts = [tuple(files)] if self.span.is_full else self.reader.batches(files)
        slices = []
        for part in parts:
            size = sum(file.version.size for file in part)
            noun = "file" if len(part) == 1 else "files"
            told = f"{len(part)} {noun} again, {self.span}{how}"
            slices.append(Slice(position, position, new_run_id(), size, told, part, len(part)))
        return slices

    def fetch(self, slices: list[Slice]) -> Fetched:
        return self.reader.fetch(slices)

    def newest(self) -> Slice | None:
        return self.reader.newest()

    def check(self, slices: Sequence[Slice]) -> None:
        self.reader.check(slices)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        return self.reader.sent(slices)

    def values(self, slices: Sequence[Slice]) -> Mapping[str, Sequence[str]] | None:
        return self.reader.values(slices)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        return self.reader.read(piece, columns)

    def weight(self, piece: Slice) -> Weight:
        return self.reader.weight(piece)

    def confirm(self, piece: Slice) -> None:
        self.reader.confirm(piece)

    def settled(self, piece: Slice) -> None:
        self.done.update(file.path for file in piece.content)
        self.reader.settled(piece)

    def close(self) -> None:
        self.reader.close()

    def _chosen(self) -> tuple[list[FoundFile], str]:
        """Return the files of the span, and by what they were chosen."""
        listed = self.reader.place.list()
        if self.span.is_full:
            return listed, ""
        dates = [_date(file.path) for file in listed]
        if None in dates:
            dates = [datetime.fromtimestamp(file.version.modified / 1e9, UTC) for file in listed]
            how = ", by times of modification"
        else:
            how = ", by dates in paths"
        chosen = [
            file
            for file, moment in zip(listed, dates, strict=True)
            if moment is not None and self.span.holds(moment)
        ]
        return chosen, how


def _date(path: str) -> datetime | None:
    """Return the last date in a path."""
    for year, month, day in reversed(_DATE.findall(path)):
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue  # the 31st of a shorter month
    return None
