"""The kinds of source that a pipeline may declare."""

from esker.project.sources.files import FilesSource

Source = FilesSource
"""Any source. With a second kind this becomes a union told apart by `type`."""

__all__ = ["FilesSource", "Source"]
