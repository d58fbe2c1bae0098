"""Where a catalog says that a table's metadata lies, without loading the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from esker.engine.iceberg.table_files import TableFiles
from esker.engine.session import Engine

METADATA_LOCATION = "metadata_location"
PREVIOUS_LOCATION = "previous_metadata_location"
"""What every catalog calls them that keeps both."""


class PointerMoved(Exception):
    """The catalog points elsewhere by now: somebody committed."""


class NotServed(Exception):
    """The catalog answers, and does not hand out this table."""


@dataclass(frozen=True)
class Pointer:
    """What a catalog says of one table."""

    location: str
    """The metadata file that it points to."""
    files: TableFiles = field(repr=False, compare=False)
    previous: str | None = None
    """The file before, where the catalog knows it: certainly committed."""
    served: str | None = field(default=None, repr=False)
    """The metadata itself, from a server that hands it out and does not need the file for that."""
    token: Any = field(default=None, repr=False, compare=False)
    """What the catalog compares with, beside the location."""


@dataclass(frozen=True)
class NextFile:
    """A metadata file that is to be written."""

    folder: str
    version: int
    """Behind all that were ever written there."""
    content: bytes = field(repr=False)

    def write(self, files: TableFiles) -> str:
        """Write it under a name of its own; return where it lies. Nobody refers to it yet."""
        location = f"{self.folder}/{self.version:05d}-{uuid4()}.metadata.json"
        files.write(location, self.content)
        return location


@dataclass(frozen=True)
class Pointers(ABC):
    """The pointers of one catalog."""

    engine: Engine
    catalog: str

    @abstractmethod
    def read(self, table: str) -> Pointer | None:
        """Return a table's pointer; None when the catalog has no such table.

        Raises CatalogUnreachable, and NotServed where a server hands out no pointer without the table.
        """

    @abstractmethod
    def replace(self, table: str, pointer: Pointer, following: NextFile) -> str:
        """Write a table's next metadata file and point to it; return where it lies.

        The pointer is compared with the one that was read: raises PointerMoved when it is another one by
        now, and RepairRefused where the catalog has no such way. A stop in between leaves a file that nobody
        refers to.
        """

    @cached_property
    def files(self) -> TableFiles:
        """The files of the catalog's tables."""
        return TableFiles.of_catalog(self.engine, self.catalog)

    @property
    def _jvm(self) -> Any:
        context: Any = self.engine.spark.sparkContext
        return context._jvm

    @property
    def _settings(self) -> dict[str, str]:
        return dict(self.engine.bindings[self.catalog].settings)
