"""How each kind of source is read. A new kind is one file here and one in `project/sources`."""

from collections.abc import Callable
from typing import Any

from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.project.pipelines import Pipeline
from esker.project.sources import FilesSource
from esker.sources.files.again import FilesAgain
from esker.sources.files.reader import FilesReader
from esker.sources.source import MALFORMED, ORIGIN, RECORD, Reader, Sent, Slice, Weight
from esker.sources.span import Span

_KINDS: dict[type, Callable[[Engine, str, Pipeline, TableId], Any]] = {FilesSource: FilesReader.of}

_AGAIN: dict[type, Callable[[Engine, str, Pipeline, TableId, Span], Any]] = {FilesSource: FilesAgain.of}


def reader(engine: Engine, name: str, pipeline: Pipeline, files_table: TableId) -> Reader:
    """Return the reader of a pipeline's source. `files_table` is where it may keep what is large."""
    found: Reader = _KINDS[type(pipeline.source)](engine, name, pipeline, files_table)
    return found


def again(engine: Engine, name: str, pipeline: Pipeline, files_table: TableId, span: Span) -> Reader:
    """Return a reader of what lies in a span of a pipeline's source, loaded or not."""
    found: Reader = _AGAIN[type(pipeline.source)](engine, name, pipeline, files_table, span)
    return found


__all__ = ["MALFORMED", "ORIGIN", "RECORD", "Reader", "Sent", "Slice", "Span", "Weight", "again", "reader"]
