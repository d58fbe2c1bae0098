"""What can be asked of a table as it was when it was opened, with Java or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from esker.engine.iceberg.table_metadata import History, Snapshot, SnapshotId

if TYPE_CHECKING:
    from esker.engine.iceberg.manifests import FileEntry, LiveFiles
    from esker.engine.iceberg.schema import FieldSchema


class View(Protocol):
    """A table by one metadata file: an `Attempt` by Java's objects, a `Document` by the file itself."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    @property
    def uuid(self) -> str:
        """Tells the table from another one of its name."""

    @property
    def current(self) -> SnapshotId | None:
        """The newest snapshot of main."""

    @property
    def sequence(self) -> int:
        """The sequence number of the current snapshot."""

    @property
    def schema(self) -> FieldSchema:
        """The table's columns, with their field ids."""

    @property
    def files(self) -> LiveFiles:
        """The files of the current snapshot."""

    def has_values_in(self, column: str) -> bool:
        """Tell whether files of the current snapshot may have values in a column."""

    def descends(self, snapshot: SnapshotId, sequence: int) -> bool | None:
        """Tell whether main descends from a snapshot; None when nobody can tell any more."""

    def history(self, snapshot: SnapshotId, sequence: int) -> History:
        """Return what happened since a snapshot, which has this sequence number."""

    def removed_data(self, snapshot: Snapshot) -> list[FileEntry] | None:
        """Return the data files that a snapshot took out of the table; None when nobody can tell."""

    def last_snapshot_with(self, key: str, value: str) -> SnapshotId | None:
        """Return the newest known snapshot whose summary holds a value; staged ones do not count."""
