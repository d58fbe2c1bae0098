"""A files source: slices are files that have not been loaded, whatever their age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from esker.engine.failures import explained
from esker.engine.session import Engine
from esker.errors import FileChanged, FileChangedWhileReading
from esker.ledger.entry import Position
from esker.ledger.loaded_files import LoadedFiles
from esker.ledger.run_id import new_run_id
from esker.project.modes import WHOLE
from esker.project.pipelines import Pipeline
from esker.project.sources import FilesSource
from esker.project.types import Column
from esker.sources.files.again import FilesAgain
from esker.sources.files.csv import CsvFormat
from esker.sources.files.csv_header import Header
from esker.sources.files.formats import Format
from esker.sources.files.jsonl import JsonLinesFormat
from esker.sources.files.listing import FoundFile, list_files, look_at
from esker.sources.files.parquet import ParquetFormat
from esker.sources.files.parquet_footer import Footer
from esker.sources.source import Opening, Reader, Sent, Slice, Weight
from esker.sources.span import Span

_SHOWN = 3


@dataclass(frozen=True)
class FilesReader(Reader):
    """Reads the files of one pipeline. Its position is the last batch and the number of files."""

    engine: Engine
    name: str
    pipeline: Pipeline
    source: FilesSource
    loaded: LoadedFiles
    headers: dict[FoundFile, Header] = field(default_factory=dict)
    footers: dict[FoundFile, Footer] = field(default_factory=dict)
    schemas: dict[str, tuple[Column, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, opening: Opening) -> FilesReader:
        engine, name, pipeline = opening.engine, opening.name, opening.pipeline
        assert isinstance(pipeline.source, FilesSource)
        loaded = LoadedFiles(engine, opening.files_table, name)
        return cls(engine, name, pipeline, pipeline.source, loaded)

    def again(self, span: Span) -> FilesAgain:
        return FilesAgain(self, span)

    def plan(self, position: Position | None) -> list[Slice]:
        if self.pipeline.mode in WHOLE:
            return self._whole(position)
        listed = list_files(self.engine.project, self.name, self.source)
        batch, before = (position["batch"], position["files"]) if position else (None, 0)
        found = self.loaded.compare(batch, [file.version for file in listed])
        changed = [file for file in listed if file.path in found.changed]
        if changed and self.source.on_changed == "error":
            told = [f'"{f.path}" had {found.changed[f.path]}, now {f.version}' for f in changed[:_SHOWN]]
            raise FileChanged(self.name, told, len(changed))
        wanted = found.fresh | found.changed.keys() if self.source.on_changed == "reload" else found.fresh
        return self._slices([file for file in listed if file.path in wanted], position, before)

    def _whole(self, position: Position | None) -> list[Slice]:
        """Return all files as one slice, if any has come, changed or gone."""
        files = list_files(self.engine.project, self.name, self.source)
        known = self.loaded.upto(position["batch"] if position else None)
        if {file.path: file.version for file in files} == known:
            return []
        end: dict[str, Any] = {"batch": new_run_id(), "files": len(files)}
        size = sum(file.version.size for file in files)
        return [Slice(position, end, end["batch"], size, _counted(files), tuple(files), len(files))]

    def matching(self) -> tuple[FoundFile, ...]:
        """Return the files that are there now, loaded or not."""
        return tuple(list_files(self.engine.project, self.name, self.source))

    def newest(self) -> Slice | None:
        files = list_files(self.engine.project, self.name, self.source)
        return self._slices(files[:1], None, 0)[0] if files else None

    def check(self, slices: Sequence[Slice]) -> None:
        files = [file for piece in slices for file in piece.content]
        with explained("cannot look into the files", self.engine.log, reads_source=True):
            self._format().check(files)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        files = [file for piece in slices for file in piece.content]
        with explained("cannot look into the files", self.engine.log, reads_source=True):
            return self._format().sent(files)

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        with explained("cannot read the files", self.engine.log, reads_source=True):
            return self._format().read(piece.content, columns)

    def weight(self, piece: Slice) -> Weight:
        return self._format().weight(piece.content)

    def confirm(self, piece: Slice) -> None:
        for file in piece.content:
            now = look_at(self.engine.project, file.path)
            if now is None or now.version != file.version:
                after = str(now.version) if now else "a folder"
                raise FileChangedWhileReading(self.name, file.path, str(file.version), after)

    def record(self, piece: Slice, run: str) -> None:
        assert piece.end is not None
        self.loaded.record(
            [file.version for file in piece.content],
            batch=piece.end["batch"],
            # A slice of all files is the whole truth: what was loaded before does not count.
            previous=piece.start["batch"] if piece.start and self.pipeline.mode not in WHOLE else None,
            run=run,
        )

    def _slices(self, files: list[FoundFile], position: Position | None, before: int) -> list[Slice]:
        slices = []
        for first in range(0, len(files), self.source.max_files):
            part = tuple(files[first : first + self.source.max_files])
            end: dict[str, Any] = {"batch": new_run_id(), "files": before + first + len(part)}
            size = sum(file.version.size for file in part)
            slices.append(
                Slice(position, end, end["batch"], size, _counted(part), part, len(part), until=_newest(part))
            )
            position = end
        return slices

    def _format(self) -> Format:
        spark, source = self.engine.spark, self.source
        match source.format:
            case "csv":
                return CsvFormat(spark, source, tuple(self.pipeline.columns), self.headers)
            case "jsonl":
                return JsonLinesFormat(spark, source)
            case "parquet":
                return ParquetFormat(spark, source, self.footers, self.schemas)


def _counted(files: Sequence[FoundFile]) -> str:
    return f"{len(files)} file" if len(files) == 1 else f"{len(files)} files"


def _newest(files: Sequence[FoundFile]) -> datetime:
    """Return the moment up to which files tell of the world: when the last of them was written."""
    modified = max(file.version.modified for file in files)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=modified // 1000)
