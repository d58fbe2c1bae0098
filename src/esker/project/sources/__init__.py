"""The kinds of source that a pipeline may declare: those of Esker, and those that other packages offer."""

from esker.project.sources.files import FilesSource
from esker.project.sources.kinds import Source
from esker.project.sources.source import PluggedInSource, SourceDeclaration

__all__ = ["FilesSource", "PluggedInSource", "Source", "SourceDeclaration"]
