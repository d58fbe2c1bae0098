"""What others need to read a project's tables. A new reader is one file here.

Values of secrets are never written: each reader gets the name of the variable instead.
"""

from __future__ import annotations

from collections.abc import Callable

from esker.errors import CannotExport
from esker.pipeline.export import athena, duckdb, pyiceberg, trino
from esker.pipeline.export.reader import Exported, Lake
from esker.project import Project

_READERS: dict[str, Callable[[Lake], Exported]] = {
    "athena": athena.export,
    "duckdb": duckdb.export,
    "pyiceberg": pyiceberg.export,
    "trino": trino.export,
}
READERS = tuple(_READERS)
"""Those that can be written for."""


def export_reader(project: Project, reader: str, connection: str | None = None) -> Exported:
    """Return what a reader must be told of a catalog: the project's, or the one of a connection.

    Raises CannotExport for a reader that cannot use this catalog.
    """
    if connection is not None and not project.has_catalog(connection):
        raise CannotExport(reader, f'there is no catalog "{connection}" in the project')
    return _READERS[reader](Lake.of(project, connection, reader))


__all__ = ["READERS", "Exported", "export_reader"]
