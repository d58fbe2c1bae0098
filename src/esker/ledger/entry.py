"""The ledger: what a table says about how far each pipeline has come.

It stands in the table's properties and is written by the very commit that adds the data, so data and
position can never disagree. Snapshot summaries repeat a part of it for people; they vanish with their
snapshots and decide nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from esker.errors import LedgerTooLarge
from esker.ledger.stored_json import as_document, as_text, check_fields, read_property

HEAD = "esker.head"
_PREFIX = "esker.ledger."
_LIMIT = 3_500
"""Bytes of an entry. Hive's metastore and others cut or refuse longer properties."""

Position = Mapping[str, Any]


@dataclass(frozen=True)
class LedgerEntry:
    """A pipeline's last publish into a table."""

    position: Position | None
    """Null after rows that were handed over: the source has not been read yet."""
    changeset: int
    run: str
    writer: str
    epoch: int
    snapshot: int
    sequence: int
    project: str
    source: str


@dataclass(frozen=True)
class Head:
    """The table's last publish by any pipeline: changesets are numbered from here."""

    changeset: int
    snapshot: int
    sequence: int


_Kind = TypeVar("_Kind", LedgerEntry, Head)


def read_entry(properties: Mapping[str, str], pipeline: str) -> LedgerEntry | None:
    """Return a pipeline's entry, or None when it has never published into the table.

    Raises LedgerTooNew or LedgerUnreadable, as do all that read properties of Esker's.
    """
    return _read(properties, _PREFIX + pipeline, LedgerEntry)


def read_head(properties: Mapping[str, str]) -> Head | None:
    """Return the table's head, or None when no pipeline has published into it."""
    return _read(properties, HEAD, Head)


def pipelines_in(properties: Mapping[str, str]) -> list[str]:
    """Return the pipelines that have an entry, readable or not."""
    return [name.removeprefix(_PREFIX) for name in properties if name.startswith(_PREFIX)]


def head_property(head: Head) -> dict[str, str]:
    """Return the table property that holds a head."""
    return {HEAD: as_document(asdict(head))}


def as_properties(pipeline: str, entry: LedgerEntry, head: Head) -> dict[str, str]:
    """Return the table properties that hold an entry and the head, or raise LedgerTooLarge."""
    text = as_document(asdict(entry))
    if len(text.encode()) > _LIMIT:
        raise LedgerTooLarge(pipeline, len(text.encode()), _LIMIT)
    return {_PREFIX + pipeline: text, **head_property(head)}


def entry_digest(entry: LedgerEntry | None) -> str:
    """Return a text that is equal for equal entries only."""
    return hashlib.sha256(as_text(asdict(entry) if entry else None).encode()).hexdigest()


def _read(properties: Mapping[str, str], name: str, kind: type[_Kind]) -> _Kind | None:
    def build(document: Any) -> _Kind:
        check_fields(document, [field.name for field in fields(kind)])
        return kind(**document)

    return read_property(properties, name, build)
