"""What users declare of sources. `source_kinds.py` beside this package puts all kinds together."""

from esker.project.sources.dlt import DltSource
from esker.project.sources.files import FilesSource
from esker.project.sources.http import HttpSource
from esker.project.sources.jdbc import JdbcSource
from esker.project.sources.oai_pmh import OaiPmhSource
from esker.project.sources.python import PythonSource
from esker.project.sources.source import PluggedInSource, SourceDeclaration
from esker.project.sources.table import QuerySource, TableSource
from esker.project.sources.windows import WindowSettings

__all__ = [
    "DltSource",
    "FilesSource",
    "HttpSource",
    "JdbcSource",
    "OaiPmhSource",
    "PluggedInSource",
    "PythonSource",
    "QuerySource",
    "SourceDeclaration",
    "TableSource",
    "WindowSettings",
]
