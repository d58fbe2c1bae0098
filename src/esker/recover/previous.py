"""Which metadata file was the table's before: the newest that was committed and that can still be used."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from esker.engine.iceberg.metadata_file import MetadataBroken, read_document
from esker.engine.iceberg.metadata_names import is_numbered, version_of
from esker.engine.iceberg.pointers import Pointer
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import NothingToRestore
from esker.recover.whole import Whole


@dataclass(frozen=True)
class Previous:
    """A metadata file to go back to."""

    location: str
    document: dict[str, Any] = field(repr=False)
    versions_lost: int
    """How many commits lie between it and the file that the catalog points to, that one included."""
    passed_over: tuple[str, ...] = ()
    """Newer files that cannot be used, each with the reason."""
    newest_version: int = 0
    """No file has a higher one."""

    @property
    def folder(self) -> str:
        return self.location.rpartition("/")[0]


def previous_good(engine: Engine, table: TableId, pointer: Pointer) -> Previous:
    """Return the newest committed metadata file before the one that a catalog points to.

    One whose current snapshot can be read is preferred. A file of a commit that lost a race looks like any
    other: only those count that the catalog names, that a later file has in its log, or that have their
    version for themselves, also among files that are named and lost. Raises NothingToRestore.
    """
    folder = (pointer.previous or pointer.location).rpartition("/")[0]
    names = [name for name in pointer.files.names(folder) if version_of(name) is not None]
    broken = pointer.location.rpartition("/")[2]
    if is_numbered(broken):
        names = [name for name in names if is_numbered(name)]  # what else is there is a writer's scratch file
    until = version_of(broken)
    newest = max((version_of(name) or 0 for name in (*names, broken)), default=0)
    committed = {pointer.previous.rpartition("/")[2]} if pointer.previous else set()
    of_version = Counter(version_of(name) for name in {*names, broken, *committed})
    whole = Whole(pointer.files)
    passed: list[str] = []
    readable: Previous | None = None
    for name in sorted(names, key=lambda name: version_of(name) or 0, reverse=True):
        version = version_of(name) or 0
        if name == broken:
            continue
        try:
            document = read_document(engine, pointer.files, f"{folder}/{name}")
        except MetadataBroken as error:
            passed.append(f"{name}: {error}")
            continue
        committed |= {each["metadata-file"].rpartition("/")[2] for each in document.get("metadata-log", ())}
        if until is not None and version >= until and name not in committed:
            continue  # of a commit that failed: the catalog never pointed to it
        # A version is committed once. Its file may be lost, and that of a commit that failed still there.
        is_alone = of_version[version] == 1 and version not in map(version_of, committed)
        if not (name in committed or is_numbered(name) or is_alone):
            passed.append(f"{name}: whether it was ever committed is not known")
            continue
        lost = max(until - version, 1) if until is not None else 1
        found = Previous(f"{folder}/{name}", document, lost, tuple(passed), newest)
        if whole.current(document):
            return found
        passed.append(f"{name}: its current snapshot cannot be read")
        readable = readable or found
    if readable is None:
        raise NothingToRestore(str(table), pointer.location, passed)
    return readable
