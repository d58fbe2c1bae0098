"""How each kind of source is read. A new kind is one file here and one in `project/sources`."""

from importlib import import_module

from esker.project.sources import PluggedInSource
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

_READERS = {
    "dlt": "esker.sources.dlt:DltReader",
    "files": "esker.sources.files.reader:FilesReader",
    "http": "esker.sources.http.reader:HttpReader",
    "jdbc": "esker.sources.jdbc.reader:JdbcReader",
    "oai_pmh": "esker.sources.oai_pmh:OaiPmhReader",
    "python": "esker.sources.python:PythonReader",
    "query": "esker.sources.query:QueryReader",
    "table": "esker.sources.table:TableReader",
}
"""Where each kind is read. Imported when it is used: what a kind needs need not be installed for others."""


def reader(opening: Opening) -> Reader:
    """Return the reader of a pipeline's source."""
    source = opening.pipeline.source
    if isinstance(source, PluggedInSource):
        plugged_in: Reader = source.open(opening)
        return plugged_in
    module, _, name = _READERS[source.type].partition(":")
    found: Reader = getattr(import_module(module), name).of(opening)
    return found


__all__ = [
    "MALFORMED",
    "ORIGIN",
    "RECORD",
    "UNTIL",
    "Fetched",
    "Opening",
    "Reader",
    "Sent",
    "Slice",
    "Span",
    "Weight",
    "reader",
]
