"""A files source: slices are files that have not been loaded, whatever their age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.table_id import TableId
from esker.engine.session import Engine
from esker.errors import EskerError
from esker.ledger.entry import Position, read_entry
from esker.ledger.loaded_files import LoadedFiles
from esker.ledger.run_id import new_run_id
from esker.project.modes import SWAPPING, WHOLE
from esker.project.pipelines import Pipeline
from esker.project.sources import FilesSource
from esker.project.types import Column
from esker.sources.files.again import FilesAgain
from esker.sources.files.avro import AvroFormat
from esker.sources.files.copies import Copies
from esker.sources.files.csv import CsvFormat
from esker.sources.files.csv_header import Header
from esker.sources.files.formats import Format
from esker.sources.files.found import FoundFile
from esker.sources.files.jsonl import JsonLinesFormat
from esker.sources.files.news import is_as_loaded, wanted
from esker.sources.files.orc import OrcFormat
from esker.sources.files.packing import TEXT_FORMATS, packing_of, refuse_packed
from esker.sources.files.parquet import ParquetFormat
from esker.sources.files.partitions import Partitioned
from esker.sources.files.place import Place
from esker.sources.files.places import place_of
from esker.sources.files.typed import Known
from esker.sources.files.xml import XmlFormat
from esker.sources.source import ORIGIN, Fetched, Opening, Reader, Sent, Slice, Weight
from esker.sources.span import Span

_MOST_COPIED = 4 << 30
"""Bytes of copies at a time, where the source does not say."""


@dataclass(frozen=True)
class FilesReader(Reader):
    """Reads the files of one pipeline. Its position is the last batch and the number of files."""

    engine: Engine
    name: str
    pipeline: Pipeline
    source: FilesSource
    loaded: LoadedFiles
    place: Place
    copies: Copies
    headers: dict[FoundFile, Header] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    checked: set[FoundFile] = field(default_factory=set)
    many: set[str] = field(default_factory=set)
    """Batches with which the record of loaded files had so many files that they are put together."""
    passed: dict[str, Slice] | None = None
    """Slices that somebody has looked at who records nothing, by batch; None where they are recorded."""

    @classmethod
    def of(cls, opening: Opening) -> FilesReader:
        engine, name, pipeline = opening.engine, opening.name, opening.pipeline
        source = pipeline.source
        assert isinstance(source, FilesSource)
        loaded = LoadedFiles(engine, opening.files_table, name)
        place = place_of(engine.project, name, source)
        copies = Copies(place, source.format, _folder(engine))
        passed: dict[str, Slice] | None = {} if opening.state is None else None
        return cls(engine, name, pipeline, source, loaded, place, copies, passed=passed)

    def again(self, span: Span) -> FilesAgain:
        return FilesAgain(self, span)

    def plan(self, position: Position | None) -> list[Slice]:
        if self.pipeline.mode in WHOLE:
            return self._whole(position)
        listed = self.place.list()
        batch, before = (position["batch"], position["files"]) if position else (None, 0)
        while self.passed and batch in self.passed:
            piece = self.passed[batch]
            seen = {file.path for file in piece.content}
            listed = [file for file in listed if file.path not in seen]
            batch = piece.start["batch"] if piece.start else None
        found = self.loaded.compare(batch, [file.version for file in listed])
        return self._slices(wanted(self.name, self.source, listed, found), position, before)

    def _whole(self, position: Position | None) -> list[Slice]:
        """Return all files as one slice, if any has come, changed or gone."""
        files = self.place.list()
        known = self.loaded.upto(position["batch"] if position else None)
        if is_as_loaded(files, known):
            return []
        end: dict[str, Any] = {"batch": new_run_id(), "files": len(files)}
        size = sum(file.version.size for file in files)
        return [Slice(position, end, end["batch"], size, _counted(files), tuple(files), len(files))]

    def fetch(self, slices: list[Slice]) -> Fetched:
        """Copy here what Spark cannot read where it is: as much as there is room for, the rest later."""
        room = self.source.max_bytes or _MOST_COPIED
        fetched: list[Slice] = []
        for piece in slices:
            self._check_packing(piece.content)
            room -= sum(file.version.size for file in piece.content if self.copies.is_needed(file))
            if fetched and room < 0:
                return Fetched(fetched, has_more=True)
            fetched.append(replace(piece, content=self.copies.make(piece.content)))
        return Fetched(fetched)

    def matching(self) -> tuple[FoundFile, ...]:
        """Return the files that are there now, loaded or not."""
        return tuple(self.place.list())

    def newest(self) -> Slice | None:
        files = self.place.list()
        return self.fetch(self._slices(files[:1], None, 0)).slices[0] if files else None

    def check(self, slices: Sequence[Slice]) -> None:
        files = _all_of(slices)
        with self._looking_into(files):
            self._format().check(files)

    def sent(self, slices: Sequence[Slice]) -> Sent:
        files = _all_of(slices)
        with self._looking_into(files):
            return self._format().sent(files)

    def values(self, slices: Sequence[Slice]) -> Mapping[str, Sequence[str]] | None:
        found = self._format()
        return found.values(_all_of(slices)) if isinstance(found, CsvFormat) else None

    def read(self, piece: Slice, columns: tuple[Column, ...]) -> DataFrame:
        with explained("cannot read the files", self.engine.log, reads_source=True):
            frame = self._format().read(piece.content, columns)
            return frame.withColumn(ORIGIN, self.copies.origin(F.col(ORIGIN)))

    def weight(self, piece: Slice) -> Weight:
        return self._format().weight(piece.content)

    def confirm(self, piece: Slice) -> None:
        for file in piece.content:
            # A copy is what was listed, whatever became of the file since.
            if file.copied is None:
                self.place.confirm(file)

    def record(self, piece: Slice, run: str) -> None:
        assert piece.end is not None
        is_many = self.loaded.record(
            [file.version for file in piece.content],
            batch=piece.end["batch"],
            # A slice of all files is the whole truth: what was loaded before does not count.
            previous=piece.start["batch"] if piece.start and self.pipeline.mode not in WHOLE else None,
            run=run,
        )
        if is_many:
            self.many.add(piece.end["batch"])

    def published(self, piece: Slice) -> None:
        if piece.end is not None and piece.end["batch"] in self.many:
            self.many.clear()
            self.loaded.put_together(self._published)

    def _published(self) -> str | None:
        """Return the batch that the ledger names now: perhaps no longer the one that was published here."""
        table = TableId(self.loaded.table.catalog, self.pipeline.table)
        entry = read_entry(Attempt(self.engine, table).properties, self.name)
        position = entry.position if entry is not None else None
        return position.get("batch") if position is not None else None

    def settled(self, piece: Slice) -> None:
        self.copies.drop(piece.content)
        if self.passed is not None and piece.end is not None:
            self.passed[piece.end["batch"]] = piece

    def close(self) -> None:
        self.copies.close()

    def batches(self, files: Sequence[FoundFile]) -> Iterator[tuple[FoundFile, ...]]:
        """Yield files in parts that are not too large.

        A batch that takes the place of stored rows is cut only where the project file says so: rows of a
        partition, or of a key, may stand in several files.
        """
        declared = self.source.model_fields_set & {"max_files", "max_bytes"}
        if self.pipeline.mode in SWAPPING and not declared:
            if files:
                yield tuple(files)
            return
        most = self.source.max_bytes
        if most is None and any(self.copies.is_needed(file) for file in files):
            most = _MOST_COPIED
        part: list[FoundFile] = []
        size = 0
        for file in files:
            is_too_much = most is not None and size + file.version.size > most
            if part and (len(part) == self.source.max_files or is_too_much):
                yield tuple(part)
                part, size = [], 0
            part.append(file)
            size += file.version.size
        if part:
            yield tuple(part)

    def _slices(self, files: list[FoundFile], position: Position | None, before: int) -> list[Slice]:
        slices = []
        for part in self.batches(files):
            before += len(part)
            end: dict[str, Any] = {"batch": new_run_id(), "files": before}
            size = sum(file.version.size for file in part)
            slices.append(
                Slice(position, end, end["batch"], size, _counted(part), part, len(part), until=_newest(part))
            )
            position = end
        return slices

    def _check_packing(self, files: Sequence[FoundFile]) -> None:
        for file in files:
            if self.source.format in TEXT_FORMATS:
                packing_of(file.path)
            else:
                refuse_packed(file.path, self.source.format)

    @contextmanager
    def _looking_into(self, files: Sequence[FoundFile]) -> Iterator[None]:
        """Say what goes wrong in the best words: a file that went away or changed is no malformed one."""
        try:
            with explained("cannot look into the files", self.engine.log, reads_source=True):
                yield
        except EskerError:
            for file in files:
                if file.copied is None:
                    self.place.confirm(file)
            raise

    def _format(self) -> Format:
        found = self._of_files()
        if self.source.partitions is False:
            return found
        names = None if self.source.partitions is True else tuple(self.source.partitions)
        return Partitioned(found, names)

    def _of_files(self) -> Format:
        spark, source = self.engine.spark, self.source
        match source.format:
            case "csv":
                return CsvFormat(spark, source, self._named_columns(), self.headers)
            case "jsonl" | "json":
                return JsonLinesFormat(spark, source)
            case "xml":
                return XmlFormat(spark, source, self.checked)
            case "parquet":
                return ParquetFormat(spark, source, self.known)
            case "avro":
                return AvroFormat(spark, source, self.known)
            case "orc":
                return OrcFormat(spark, source, self.known)

    def _named_columns(self) -> tuple[str, ...]:
        """Return the declared columns that are in files."""
        folders = () if isinstance(self.source.partitions, bool) else self.source.partitions
        known = {name.lower() for name in folders}
        return tuple(name for name in self.pipeline.columns if name.lower() not in known)


def _folder(engine: Engine) -> Path | None:
    """Return where copies are kept: on a cluster in the project's folder, which all workers see."""
    if engine.project.spark.is_local:
        return None
    folder = engine.project.folder / ".esker"
    folder.mkdir(exist_ok=True)
    return folder


def _all_of(slices: Sequence[Slice]) -> list[FoundFile]:
    return [file for piece in slices for file in piece.content]


def _counted(files: Sequence[FoundFile]) -> str:
    return f"{len(files)} file" if len(files) == 1 else f"{len(files)} files"


def _newest(files: Sequence[FoundFile]) -> datetime:
    """Return the moment up to which files tell of the world: when the last of them was written."""
    modified = max(file.version.modified for file in files)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=modified // 1000)
