"""What the properties of a table say of the tables beside it: which they are, and what they are still owed.

Also what these say of themselves: how far they are. Whoever reads, with Spark or without, reads it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.errors import LedgerUnreadable
from esker.ledger.stored_json import as_text, check_fields, read_property

__all__ = [
    "DELETES",
    "GAPS",
    "LOG",
    "LOGGED",
    "LOGGED_AT",
    "OUTBOX",
    "QUALITY",
    "QUARANTINE",
    "SIDES",
    "TRIMMED",
    "Files",
    "Named",
    "OutboxEntry",
    "Place",
    "Trimmed",
    "as_places",
    "as_text",
    "first_kept",
    "gaps_in",
    "logged_at",
    "logged_in",
    "places_in",
    "read_outbox",
    "trimmed",
]

LOG = "esker.log"
QUARANTINE = "esker.quarantine"
DELETES = "esker.deletes"
QUALITY = "esker.quality"
SIDES = (LOG, QUARANTINE, DELETES, QUALITY)
"""Properties by which a table names the tables that are filled from its outbox."""
OUTBOX = "esker.outbox"
LOGGED = "esker.logged"
LOGGED_AT = "esker.logged.at"
GAPS = "esker.gaps"
TRIMMED = "esker.trimmed"
_SHORT = {LOG: "f", QUARANTINE: "q", DELETES: "d", QUALITY: "m"}
"""How an entry of the outbox calls side tables: there is little room."""

Place = tuple[str, int]
Files = tuple[Place, ...] | str
"""Names below a side table's location with their sizes, or the name of a file that lists them."""


@dataclass(frozen=True)
class Named:
    """A table beside another one, as that one names it."""

    table: str
    uuid: str
    location: str

    def place(self, name: str) -> str:
        """Return the location of one of its files."""
        return f"{self.location}/data/{name}"

    @classmethod
    def by(cls, properties: Mapping[str, str], name: str) -> Named | None:
        """Return the side table that a table names, if it names one, or raise LedgerUnreadable."""

        def build(document: Any) -> Named:
            check_fields(document, ("table", "uuid", "location"))
            return cls(document["table"], document["uuid"], document["location"])

        return read_property(properties, name, build)


@dataclass(frozen=True)
class OutboxEntry:
    """The files of one changeset that are on their way."""

    changeset: int
    after: int
    """The changeset before it in the log: the one before, unless there is a gap."""
    snapshot: int
    owed: Mapping[str, Files]
    """By the property that names a side table; a changeset without changes owes the log no files."""

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"n": self.changeset, "s": self.snapshot}
        if self.after != self.changeset - 1:
            document["a"] = self.after
        return document | {_SHORT[name]: files for name, files in self.owed.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> OutboxEntry:
        check_fields(document, ("n", "s", "a", *_SHORT.values()))
        number = document["n"]
        owed = {name: document[short] for name, short in _SHORT.items() if short in document}
        return cls(
            changeset=number,
            after=document.get("a", number - 1),
            snapshot=document["s"],
            owed={n: files if isinstance(files, str) else as_places(files) for n, files in owed.items()},
        )


def read_outbox(properties: Mapping[str, str]) -> tuple[OutboxEntry, ...]:
    """Return the entries of a table's outbox, oldest first, or raise LedgerUnreadable."""

    def build(entries: Any) -> tuple[OutboxEntry, ...]:
        return tuple(OutboxEntry.from_json(entry) for entry in entries)

    return read_property(properties, OUTBOX, build) or ()


def logged_in(properties: Mapping[str, str]) -> int:
    """Return the last changeset in a side table with these properties, or raise LedgerUnreadable."""
    text = properties.get(LOGGED, "0")
    if not text.isdecimal():
        raise LedgerUnreadable(LOGGED, text)
    return int(text)


def gaps_in(properties: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """Return the first and last changeset of each gap of a change log, or raise LedgerUnreadable."""
    return read_property(properties, GAPS, as_pairs) or ()


def logged_at(properties: Mapping[str, str]) -> tuple[int, int] | None:
    """Return id and sequence number of a side table's last append, if it was appended to."""

    def build(document: Any) -> tuple[int, int]:
        check_fields(document, ("snapshot", "sequence"))
        return int(document["snapshot"]), int(document["sequence"])

    return read_property(properties, LOGGED_AT, build)


@dataclass(frozen=True)
class Trimmed:
    """What a change log says of the changes that have left it."""

    first: int
    """The oldest changeset that is there in full."""
    at: datetime | None
    """When somebody looked last whether there is something to forget."""


def trimmed(properties: Mapping[str, str]) -> Trimmed | None:
    """Return what a change log says of changes that have left it, if it says anything."""

    def build(document: Any) -> Trimmed:
        check_fields(document, ("first", "at"))
        at = document["at"]
        return Trimmed(int(document["first"]), datetime.fromisoformat(at) if at is not None else None)

    return read_property(properties, TRIMMED, build)


def first_kept(properties: Mapping[str, str]) -> int:
    """Return the oldest changeset that is in a change log in full, or raise LedgerUnreadable."""
    known = trimmed(properties)
    return known.first if known is not None else 1


def as_pairs(pairs: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """Return ranges as they stand in JSON."""
    return tuple((int(first), int(last)) for first, last in pairs)


def as_places(files: Iterable[Any]) -> tuple[Place, ...]:
    """Return names and sizes as they stand in JSON."""
    return tuple((str(name), int(size)) for name, size in files)


def places_in(listed: bytes) -> tuple[Place, ...]:
    """Return names and sizes as they stand in a file of their own."""
    import pyarrow as pa  # noqa: PLC0415 (not for properties alone)
    import pyarrow.parquet as pq  # noqa: PLC0415

    found = pq.read_table(pa.BufferReader(listed)).to_pydict()
    return as_places(zip(found["name"], found["size"], strict=True))
