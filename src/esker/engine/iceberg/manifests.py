"""Which files a snapshot holds, read from its manifests in this process.

Asking Iceberg for them through Py4J takes ten calls a file. Manifests are Avro files that never change:
each is read once and kept.
"""

from __future__ import annotations

import io
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import fastavro

from esker.engine.iceberg.partition_value import exact
from esker.engine.store import LOCAL, Store

_POOL = ThreadPoolExecutor(16, thread_name_prefix="esker-manifests")
_DELETED = 2
_EQUALITY = 2
_PATH_ID = 2147483546
"""Field id of the column `file_path` in files of position deletes."""


Partition = tuple[int, tuple[tuple[str, Any], ...]]
"""A spec and the values of its fields."""
KEPT_BYTES = 128 * 2**20
"""The manifests of about a hundred thousand data files with ten columns."""
_OF_ENTRY, _OF_BOUND = 900, 120
"""Bytes that Python takes for an entry and for a bound, beside their contents."""


@dataclass(frozen=True)
class SpecField:
    """A field of a partition spec."""

    source: int
    """Field id of the column."""
    transform: str


SpecOf = Callable[[int], tuple[SpecField, ...]]
"""Returns the fields of a spec, by its id."""


def _unknown_spec(spec_id: int) -> tuple[SpecField, ...]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class FileEntry:
    """A file of a snapshot: data, position deletes or equality deletes."""

    content: int
    path: str
    format: str
    records: int
    size: int
    sequence: int
    added: int
    """Sequence number of the commit that added it. A compaction adds files that keep an older `sequence`."""
    snapshot: int | None
    spec_id: int
    partition: tuple[tuple[str, Any], ...]
    lower: Mapping[int, bytes]
    upper: Mapping[int, bytes]
    reference: str | None
    offset: int | None
    length: int | None
    equality: tuple[int, ...] = ()
    """Field ids by whose values an equality delete deletes."""

    def lowest(self, column: int) -> int | None:
        """Return the lowest value of a column of whole numbers or moments; None where nothing tells it."""
        return _whole_number(self.lower.get(column))

    def highest(self, column: int) -> int | None:
        """Return the highest value of such a column."""
        return _whole_number(self.upper.get(column))

    @property
    def is_vector(self) -> bool:
        """A deletion vector: format version 3's position deletes of one data file."""
        return self.format == "puffin"


@dataclass(frozen=True)
class LiveFiles:
    """The files that make up a snapshot."""

    data: tuple[FileEntry, ...] = ()
    deletes: tuple[FileEntry, ...] = ()
    store: Store = LOCAL
    spec_of: SpecOf = _unknown_spec

    @cached_property
    def has_equality_deletes(self) -> bool:
        """Some engine deleted rows by value: which they are, only a scan can tell."""
        return any(delete.content == _EQUALITY for delete in self.deletes)

    @cached_property
    def rows(self) -> int:
        """How many rows there are; at most, where deletes are by value or overlap."""
        gone = sum(delete.records for delete in self._position_deletes)
        return max(sum(file.records for file in self.data) - gone, 0)

    def deletes_of(self, file: FileEntry) -> list[FileEntry]:
        """Return the position deletes that may concern a data file, by Iceberg's rules."""
        path = file.path.encode()
        found = [delete for delete in self._by_file.get(file.path, ()) if delete.sequence >= file.sequence]
        if any(delete.is_vector for delete in found):
            # A vector holds all earlier deletes of its file; readers look at nothing else.
            return [delete for delete in found if delete.is_vector]
        for delete in self._by_partition.get((file.spec_id, file.partition), ()):
            low, high = delete.lower.get(_PATH_ID), delete.upper.get(_PATH_ID)
            inside = (low is None or low <= path) and (high is None or path <= high)
            if inside and delete.sequence >= file.sequence:
                found.append(delete)
        return found

    def deletes_in(self, partition: Partition) -> list[FileEntry]:
        """Return the files of position deletes of a partition; no vectors."""
        return self._positions_in.get(partition, [])

    @cached_property
    def sequences(self) -> dict[str, int]:
        """The sequence number of each data file, by its path."""
        return {file.path: file.sequence for file in self.data}

    @cached_property
    def _position_deletes(self) -> list[FileEntry]:
        # A delete by value names no rows: which they are, only a scan can tell.
        return [delete for delete in self.deletes if delete.content != _EQUALITY]

    @cached_property
    def _positions_in(self) -> dict[Partition, list[FileEntry]]:
        found: dict[Partition, list[FileEntry]] = defaultdict(list)
        for delete in self._position_deletes:
            if not delete.is_vector:
                found[delete.spec_id, delete.partition].append(delete)
        return found

    @cached_property
    def _by_file(self) -> dict[str, list[FileEntry]]:
        found: dict[str, list[FileEntry]] = defaultdict(list)
        for delete in self._position_deletes:
            if delete.reference is not None:
                found[delete.reference].append(delete)
        return found

    @cached_property
    def _by_partition(self) -> dict[Partition, list[FileEntry]]:
        found: dict[Partition, list[FileEntry]] = defaultdict(list)
        for delete in self._position_deletes:
            if delete.reference is None:
                found[delete.spec_id, delete.partition].append(delete)
        return found


_Name = tuple[str, int, int, int | None]


class KeptManifests:
    """Manifests that were read, those that were not asked for longest given up first. Any thread may ask."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._manifests: OrderedDict[_Name, tuple[tuple[FileEntry, ...], int]] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def get(self, name: _Name) -> tuple[FileEntry, ...] | None:
        """Return the entries of a manifest, if they are kept."""
        with self._lock:
            if name not in self._manifests:
                return None
            self._manifests.move_to_end(name)
            return self._manifests[name][0]

    def clear(self) -> None:
        """Keep nothing of what was read so far."""
        with self._lock:
            self._manifests.clear()
            self.bytes = 0

    def put(self, name: _Name, entries: tuple[FileEntry, ...]) -> None:
        """Keep the entries of a manifest, unless they alone are too many."""
        size = sum(_weight(entry) for entry in entries)
        with self._lock:
            if name in self._manifests or size > self._limit:
                return
            self._manifests[name] = entries, size
            self.bytes += size
            while self.bytes > self._limit:
                _, (_, oldest) = self._manifests.popitem(last=False)
                self.bytes -= oldest


def _weight(entry: FileEntry) -> int:
    bounds = [*entry.lower.values(), *entry.upper.values()]
    return _OF_ENTRY + len(entry.path) + sum(_OF_BOUND + len(bound) for bound in bounds)


_kept = KeptManifests()


def live_files(
    store: Store,
    manifest_list: str | None,
    may_hold: Callable[[Mapping[str, Any]], bool] = lambda manifest: True,
    spec_of: SpecOf = _unknown_spec,
) -> LiveFiles:
    """Return the files of a snapshot by the location of its manifest list.

    Of manifests of which `may_hold` says, by their records in the list, that nothing in them is wanted, none
    is opened. Raises FileNotFoundError when the snapshot has been expired meanwhile.
    """
    if manifest_list is None:
        return LiveFiles(spec_of=spec_of)
    manifests = [manifest for manifest in read_records(store, manifest_list) if may_hold(manifest)]
    data: list[FileEntry] = []
    deletes: list[FileEntry] = []
    wanted = [
        (
            each["manifest_path"],
            each.get("sequence_number") or 0,
            each["partition_spec_id"],
            each.get("added_snapshot_id"),
        )
        for each in manifests
    ]
    known = {manifest: entries for manifest in wanted if (entries := _kept.get(manifest)) is not None}
    unread = [manifest for manifest in wanted if manifest not in known]
    for manifest, entries in zip(unread, _POOL.map(lambda each: _entries(store, *each), unread), strict=True):
        known[manifest] = entries
        _kept.put(manifest, entries)
    for manifest in wanted:
        for entry in known[manifest]:
            (deletes if entry.content else data).append(entry)
    return LiveFiles(tuple(data), tuple(deletes), store, spec_of)


def removed_data(store: Store, manifest_list: str, snapshot: int) -> list[FileEntry]:
    """Return the data files that a snapshot took out of the table.

    Raises FileNotFoundError when the snapshot has been expired meanwhile.
    """
    return [
        _entry(record, manifest.get("sequence_number") or 0, manifest["partition_spec_id"], snapshot)
        for manifest in read_records(store, manifest_list)
        if manifest.get("added_snapshot_id") == snapshot and not manifest.get("content")
        for record in read_records(store, manifest["manifest_path"])
        if record["status"] == _DELETED
    ]


def _entries(
    store: Store, manifest: str, sequence: int, spec_id: int, added_by: int | None
) -> tuple[FileEntry, ...]:
    return entries_of(read_records(store, manifest), sequence, spec_id, added_by)


def entries_of(
    records: Iterable[dict[str, Any]], sequence: int, spec_id: int, added_by: int | None
) -> tuple[FileEntry, ...]:
    """Return the files that the records of a manifest add to a snapshot.

    What they leave out, they inherit: sequence number and snapshot of the commit that added the manifest.
    """
    return tuple(
        _entry(record, sequence, spec_id, added_by) for record in records if record["status"] != _DELETED
    )


def _entry(record: dict[str, Any], inherited: int, spec_id: int, added_by: int | None) -> FileEntry:
    file = record["data_file"]
    sequence, added = record.get("sequence_number"), record.get("file_sequence_number")
    snapshot = record.get("snapshot_id")
    lower, upper = _bounds(file.get("lower_bounds")), _bounds(file.get("upper_bounds"))
    content = file.get("content") or 0
    reference = file.get("referenced_data_file")
    if content == 1 and reference is None:
        low, high = lower.get(_PATH_ID), upper.get(_PATH_ID)
        if low is not None and low == high and len(low) > 16:
            # Bounds that are equal, and longer than bounds are ever cut to, name the one file.
            reference = low.decode()
    return FileEntry(
        content=content,
        path=file["file_path"],
        format=file["file_format"].lower(),
        records=file["record_count"],
        size=file["file_size_in_bytes"],
        sequence=sequence if sequence is not None else inherited,
        added=added if added is not None else inherited,
        snapshot=snapshot if snapshot is not None else added_by,
        spec_id=spec_id,
        partition=tuple((name, exact(value)) for name, value in file["partition"].items()),
        lower=lower,
        upper=upper,
        reference=reference,
        offset=file.get("content_offset"),
        length=file.get("content_size_in_bytes"),
        equality=tuple(file.get("equality_ids") or ()),
    )


def _bounds(pairs: list[dict[str, Any]] | None) -> dict[int, bytes]:
    return {pair["key"]: pair["value"] for pair in pairs or []}


def read_records(store: Store, location: str) -> list[Any]:
    """Return the records of a manifest, or of a list of them. Raises FileNotFoundError."""
    return list(fastavro.reader(io.BytesIO(store.read_bytes(location))))


def _whole_number(bound: bytes | None) -> int | None:
    return None if bound is None else int.from_bytes(bound, "little", signed=True)
