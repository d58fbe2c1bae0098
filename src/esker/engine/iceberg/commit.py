"""Move a table's main branch by one strict compare-and-swap.

Iceberg's own commit retries: it rebases the change on whatever is there by then, so a check made before
it proves nothing, and after a lost answer it can move main back over somebody else's commit. An
`Attempt` never retries. It reads everything from one metadata object, builds the change on it, and asks
the catalog to replace exactly that object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from esker.engine.failures import JvmFailure, causes, explained, first_line
from esker.engine.iceberg.access import is_ending
from esker.engine.iceberg.content_file import WrittenFile, as_object, stored_file, written_file
from esker.engine.iceberg.correct import corrected_manifests
from esker.engine.iceberg.credentials import expires, store_of
from esker.engine.iceberg.file_metrics import Correction
from esker.engine.iceberg.java import each, iceberg, in_this_thread, text_list
from esker.engine.iceberg.lookup import Keys
from esker.engine.iceberg.manifests import FileEntry, LiveFiles, SpecField, live_files, removed_data
from esker.engine.iceberg.metadata import (
    Snapshot,
    SnapshotId,
    Spec,
    is_same,
    metadata_of,
    read_snapshot,
    snapshot_of,
)
from esker.engine.iceberg.positions import StagedDeletes, write_deletes
from esker.engine.iceberg.schema import FieldSchema
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId, open_state
from esker.engine.iceberg.table_files import TableFiles
from esker.engine.iceberg.table_metadata import STAGED, History
from esker.engine.iceberg.write import adopt_files, write_files
from esker.engine.locations import is_local
from esker.engine.session import Engine
from esker.engine.store import Store
from esker.project.layout import SortField


class SwapFailed(Exception):
    """The catalog did not answer "done". Whether the change landed is not known from this."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {message}")


@contextmanager
def _swap_failed() -> Iterator[None]:
    """Building the change can fail for the same reasons as the swap (a file expired meanwhile)."""
    try:
        yield
    except JvmFailure as error:
        cause = causes(error)[0]
        raise SwapFailed(cause.kind, first_line(cause.message)) from error
    except FileNotFoundError as error:
        raise SwapFailed("FileNotFoundError", str(error)) from error


class Attempt:
    """One attempt at a table: read, build, swap."""

    def __init__(self, engine: Engine, table: TableId) -> None:
        self._jvm: Any = engine.spark.sparkContext._jvm
        self._id = table
        self._branch: str | None = None
        self._properties: dict[str, str] = {}
        self._built: Snapshot | None = None
        self._looked_for: tuple[Keys, LiveFiles] | None = None
        self._forgotten: list[SnapshotId] = []
        self._engine, self._handles = engine, engine.handles
        with explained(f'cannot load table "{table}"', engine.log):
            self._table, self._state = open_state(engine, table)
            self._metadata = metadata_of(self._state.describe())
        self._received, self._is_begun = time.time(), False

    @cached_property
    def _base(self) -> Any:
        """Iceberg's own object for the metadata that the attempt compares with."""
        return self._state.base()

    @cached_property
    def _opened(self) -> Any:
        """The transaction on it."""
        return self._state.transaction()

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self._metadata.properties

    @property
    def uuid(self) -> str:
        """Tells the table from another one of its name."""
        return self._metadata.uuid

    @property
    def version(self) -> str | None:
        """Names the metadata that the attempt compares with."""
        return self._metadata.version

    @property
    def location(self) -> str:
        """Where the table's files lie."""
        return self._metadata.location

    @property
    def format_version(self) -> int:
        """The version of Iceberg's table format."""
        return self._metadata.format_version

    @property
    def schema_id(self) -> int:
        """Names the table's columns as they are now."""
        return self._metadata.schema_id

    @property
    def current(self) -> SnapshotId | None:
        """The newest snapshot of main."""
        return self._metadata.snapshot.id if self._metadata.snapshot else None

    @property
    def is_as_written(self) -> bool:
        """The table's columns are those that its current snapshot was written with."""
        snapshot = self._metadata.snapshot
        return snapshot is not None and snapshot.schema_id == self.schema_id

    def has_values_in(self, column: str) -> bool:
        """Tell whether files of the current snapshot may have values in a column: not if it came later."""
        current = self._base.currentSnapshot()
        number = self.schema.ids.get(column)
        if current is None or number is None:
            return False
        known = self._base.schemasById().get(current.schemaId()) if current.schemaId() is not None else None
        return known is None or known.findField(number) is not None

    @cached_property
    def store(self) -> Store:
        """The store that has the table's files, with the keys that the catalog has handed out for it."""
        return store_of(self._engine, self._id.catalog, self._id.name, self._table, self.location)

    @property
    def _transaction(self) -> Any:
        """What changes are built in."""
        self._begin()
        return self._opened

    def _begin(self) -> None:
        """Renew keys that the catalog handed out long ago, before the first change.

        To find out what to change may have taken longer than they are valid, and manifests are written with
        them.
        """
        if self._is_begun:
            return
        if not is_local(self.location) and is_ending(
            expires(self._jvm, self._table), self._received, time.time()
        ):
            self._open_again()
        self._is_begun = True

    def _open_again(self) -> None:
        self._handles.forget(self._id.sql)
        table, state = open_state(self._engine, self._id)
        if not is_same(state.base(), self._base):
            raise SwapFailed("CommitFailedException", "the table moved on while the change was made")
        self._table, self._state = table, state
        for known in ("_base", "_opened"):
            self.__dict__.pop(known, None)

    @property
    def schema(self) -> FieldSchema:
        """The table's columns, with their field ids."""
        return self._metadata.fields

    @cached_property
    def files(self) -> LiveFiles:
        """The files of the current snapshot. Raises SwapFailed when they have been expired meanwhile."""
        with _swap_failed():
            snapshot = self._metadata.snapshot
            return live_files(self.store, snapshot.manifest_list if snapshot else None, spec_of=self._spec_of)

    def files_with(self, keys: Keys) -> LiveFiles:
        """Return the files of the current snapshot that may hold keys or delete them, and perhaps others.

        Manifests whose partitions cannot hold a key are not opened. Raises SwapFailed as `files` does.
        """
        if "files" in self.__dict__:
            return self.files
        if self._looked_for is not None and self._looked_for[0] is keys:
            return self._looked_for[1]
        may_hold = keys.candidates(self.schema, self._spec_of).may_be_below
        with _swap_failed():
            snapshot = self._metadata.snapshot
            manifests = snapshot.manifest_list if snapshot else None
            found = live_files(self.store, manifests, may_hold, self._spec_of)
        self._looked_for = keys, found
        return found

    @property
    def may_have_equality_deletes(self) -> bool:
        """False where the current snapshot says that there are none; no file is read."""
        snapshot = self._metadata.snapshot
        return snapshot is not None and snapshot.summary.get("total-equality-deletes") != "0"

    def _spec_of(self, spec_id: int) -> tuple[SpecField, ...]:
        # A table that was copied, restored or branched off has the uuid of another one, and specs of its own:
        # what this metadata says holds for it alone.
        return self._metadata.specs[spec_id].fields

    def write(self, rows: pa.Table, stem: str) -> StagedFiles:
        """Write rows as data files from this process. `stem` begins their names and is unique."""
        with _swap_failed():
            files, size = write_files(self._metadata, self._locate, self.store, rows, stem)
        return StagedFiles(self._id, self.uuid, self.schema_id, len(rows), size, len(files), tuple(files))

    def _locate(self, names: Sequence[tuple[str, tuple[Any, ...]]]) -> list[str]:
        """Return where new files are to lie, by their names and the values of their partitions."""
        folder = self._metadata.data_folder
        if folder is not None and not any(values for _, values in names):
            return [f"{folder}{name}" for name, _ in names]
        spec = self._metadata.spec
        asked = [
            {"name": name, "beside": _in_partition(spec, values)} if values else {"name": name}
            for name, values in names
        ]
        found: list[str] = json.loads(self._state.locations(json.dumps(asked)))
        return found

    def delete(self, doomed: Mapping[FileEntry, BitMap64], files: LiveFiles | None = None) -> StagedDeletes:
        """Write the deletes of positions in files of the current snapshot.

        `files` are those of `files_with`, if they were looked for with keys.
        """
        with _swap_failed():
            return write_deletes(self._metadata, self._locate, files or self.files, doomed)

    def adopt(self, files: Sequence[tuple[str, int]]) -> StagedFiles:
        """Take Parquet files that lie in the table's store, by location and size, as staged ones."""
        with _swap_failed():
            taken = adopt_files(self._table, self._jvm, self.store, files)
        rows = sum(file.recordCount() for file in taken)
        size = sum(size for _, size in files)
        return StagedFiles(self._id, self.uuid, self.schema_id, rows, size, len(taken), tuple(taken))

    def append(self, staged: StagedFiles, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        """Add staged files; return the new snapshot's id and sequence number.

        Both are final already: the swap never rebases, so they cannot change afterwards.
        """
        return self._build("append", [staged], summary)

    def row_delta(
        self,
        added: Sequence[StagedFiles],
        deletes: StagedDeletes,
        looked_at: Iterable[FileEntry],
        summary: Mapping[str, str],
    ) -> tuple[SnapshotId, int]:
        """Add rows and delete others; return the new snapshot's id and sequence number.

        `looked_at` are the data files whose rows decided what is written: all must still be there. The
        swap alone guarantees that; Iceberg is asked to check it too, which costs nothing.
        """
        facts = {
            "deletes": [file.document for file in deletes.added],
            "removed": [file.document for file in deletes.removed],
            "since": self.current,
            "present": [entry.path for entry in looked_at],
        }
        return self._build("rowDelta", added, summary, facts)

    def replace(self, staged: StagedFiles, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        """Put staged files in the place of everything that the table holds."""
        with _swap_failed():
            change = self._transaction.newOverwrite()
            change.overwriteByRowFilter(iceberg(self._jvm, "expressions.Expressions").alwaysTrue())
            for file in self._objects(staged.handles):
                change.addFile(file)
            return self._into_transaction(change, summary)

    def rewrite(
        self, taken: Sequence[FileEntry], staged: Sequence[StagedFiles], summary: Mapping[str, str]
    ) -> tuple[SnapshotId, int]:
        """Put staged files in the place of some data files of the current snapshot."""
        with _swap_failed():
            change = self._transaction.newOverwrite()
            for file in self._objects([self._stored(entry) for entry in taken]):
                change.deleteFile(file)
            for files in staged:
                for file in self._objects(files.handles):
                    change.addFile(file)
            return self._into_transaction(change, summary)

    @property
    def data_files(self) -> int:
        """How many data files the current snapshot says that it has; no manifest is read."""
        snapshot = self._metadata.snapshot
        return _total_files(snapshot.summary) if snapshot is not None else 0

    def built_files(self) -> int:
        """Return how many data files the table has after what was built."""
        return _total_files(self._built_summary())

    def remove(self, column: str, upto: int, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        """Take out the rows whose number in a column is at most this. No file may hold others beside them."""
        with _swap_failed():
            change = self._transaction.newDelete()
            # By the bounds of columns: deleteFile(path) finds no file in Iceberg 1.12, and says nothing.
            old = iceberg(self._jvm, "expressions.Expressions").lessThanOrEqual(column, upto)
            change.deleteFromRowFilter(old)
            return self._into_transaction(change, summary)

    def remove_named(
        self, column: str, names: Sequence[str], summary: Mapping[str, str]
    ) -> tuple[SnapshotId, int]:
        """Take out the rows with these texts of at most 16 characters. No file may hold others beside."""
        with _swap_failed():
            change = self._transaction.newDelete()
            of_these = iceberg(self._jvm, "expressions.Expressions")
            change.deleteFromRowFilter(getattr(of_these, "in")(column, text_list(self._jvm, names)))
            return self._into_transaction(change, summary)

    def replace_partitions(self, staged: StagedFiles, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        """Put staged files in the place of what the partitions that they belong to hold."""
        with _swap_failed():
            change = self._transaction.newReplacePartitions()
            for file in self._objects(staged.handles):
                change.addFile(file)
            return self._into_transaction(change, summary)

    def swap_files(
        self,
        staged: StagedFiles,
        gone: Iterable[FileEntry],
        deletes: StagedDeletes,
        summary: Mapping[str, str],
    ) -> tuple[SnapshotId, int]:
        """Put staged files in the place of data files of the current snapshot, and of rows of others."""
        with _swap_failed():
            change = self._transaction.newRowDelta()
            for file in self._objects(staged.handles):
                change.addRows(file)
            for entry in gone:
                [file] = self._objects([self._stored(entry)])
                change.removeRows(file)
                of_it = [
                    self._stored(delete)
                    for delete in self.files.deletes_of(entry)
                    if delete.is_vector or delete.reference == entry.path
                ]
                for delete in self._objects(of_it):
                    change.removeDeletes(delete)
            for file in self._objects(deletes.added):
                change.addDeletes(file)
            for file in self._objects(deletes.removed):
                change.removeDeletes(file)
            return self._into_transaction(change, summary)

    def correct(self, corrections: Sequence[Correction], summary: Mapping[str, str]) -> bool:
        """Correct what manifests say of data files; no row changes. False when nothing is left to correct."""
        with _swap_failed():
            files = TableFiles(self.store)
            replaced = corrected_manifests(self._table, self._jvm, files, self._base, corrections)
            if not replaced:
                return False
            change = self._transaction.rewriteManifests()
            for old, new in replaced:
                change.deleteManifest(old)
                change.addManifest(new)
            self._into_transaction(change, summary)
            return True

    def touch(self, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        """Make a snapshot without any change, so that properties are compared by every catalog."""
        return self._build("append", (), summary)

    def stage_on(self, branch: str) -> None:
        """Let what is built from now on go to a branch that begins at main. One of that name is left."""
        with _swap_failed():
            self.drop_branch(branch)
            if self.current is not None:
                # Made first: a branch that begins with a commit counts its rows from nothing.
                self._transaction.manageSnapshots().createBranch(branch, self.current).commit()
            self._branch = branch

    def drop_branch(self, branch: str) -> bool:
        """Remove a branch in the same swap, if it is there."""
        if branch not in self._metadata.branches and branch != self._branch:
            return False
        with _swap_failed():
            ref = self._transaction.currentMetadata().ref(branch)
            if ref is None or not ref.isBranch():
                return False
            self._transaction.manageSnapshots().removeBranch(branch).commit()
            return True

    def forget(self, snapshot: SnapshotId) -> None:
        """Remove a snapshot that no branch leads to, in the same swap. Its files stay.

        For a batch whose data files are committed again. A snapshot that names them as added, and from which
        main does not descend, would be dangerous: earlier versions of Iceberg, such as those in other
        engines, delete such files when the snapshot expires.
        """
        self._forgotten.append(snapshot)

    def publish_branch(self, branch: str) -> tuple[SnapshotId, int]:
        """Make the newest snapshot of a branch, which descends from main's, that of main."""
        with _swap_failed():
            snapshots = self._transaction.manageSnapshots()
            snapshots.fastForwardBranch("main", branch)
            snapshots.removeBranch(branch)
            snapshots.commit()
            snapshot = self._transaction.currentMetadata().currentSnapshot()
            return snapshot.snapshotId(), snapshot.sequenceNumber()

    def tag(self, name: str, snapshot: SnapshotId) -> None:
        """Let a tag name a snapshot, in the same swap, whether it is there already or not."""
        with _swap_failed():
            change = self._transaction.manageSnapshots()
            if self._base.ref(name) is None:
                change.createTag(name, snapshot)
            else:
                change.replaceTag(name, snapshot)
            change.commit()

    def drop_tag(self, name: str) -> bool:
        """Remove a tag in the same swap, if it is there."""
        with _swap_failed():
            if self._base.ref(name) is None:
                return False
            self._transaction.manageSnapshots().removeTag(name).commit()
            return True

    def snapshot(self, snapshot: SnapshotId) -> Snapshot | None:
        """Return one of the table's snapshots; None when it has been expired."""
        return read_snapshot(self._jvm, self._base.snapshot(snapshot))

    def files_at(self, snapshot: Snapshot) -> LiveFiles:
        """Return the files of a snapshot. Raises SwapFailed when they have been expired meanwhile."""
        with _swap_failed():
            return live_files(self.store, snapshot.manifest_list)

    def added_by(self, snapshot: Snapshot) -> tuple[FileEntry, ...]:
        """Return the data files that a snapshot added; manifests of others are not opened.

        Raises SwapFailed when they have been expired meanwhile.
        """

        def may_hold(manifest: Mapping[str, Any]) -> bool:
            return not manifest.get("content") and manifest.get("added_snapshot_id") == snapshot.id

        with _swap_failed():
            live = live_files(self.store, snapshot.manifest_list, may_hold)
        return tuple(file for file in live.data if file.snapshot == snapshot.id)

    def head_of(self, branch: str) -> Snapshot | None:
        """Return the newest snapshot of a branch; None when there is no such branch."""
        ref = self._base.ref(branch)
        return read_snapshot(self._jvm, self._base.snapshot(ref.snapshotId())) if ref is not None else None

    def _objects(self, files: Iterable[Any]) -> list[Any]:
        """Return Iceberg's own objects for files of this table."""
        return [as_object(self._jvm, self._table, file) for file in files]

    def _stored(self, entry: FileEntry) -> WrittenFile:
        return stored_file(self._metadata.specs[entry.spec_id], entry)

    def _build(
        self,
        operation: str,
        added: Sequence[StagedFiles],
        summary: Mapping[str, str],
        facts: Mapping[str, Any] | None = None,
    ) -> tuple[SnapshotId, int]:
        """Build a change in one call; return the new snapshot's id and sequence number."""
        files = [file for staged in added for file in staged.handles]
        asked = {
            "added": [file.document for file in files if isinstance(file, WrittenFile)],
            "summary": dict(summary),
            "branch": self._branch,
            "is_local": is_local(self.location),
            **(facts or {}),
        }
        objects = [file for file in files if not isinstance(file, WrittenFile)]
        with _swap_failed():
            self._begin()
            build = getattr(self._state, operation)
            with self._forgetting():
                answer = build(json.dumps(asked), *([objects] if objects else ()))
        built = snapshot_of(json.loads(answer))
        assert built is not None
        self._built = built if self._branch is None else None
        return built.id, built.sequence

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """The keys that the table was loaded with may have expired: the next attempt gets others."""
        try:
            yield
        except JvmFailure:
            self._handles.forget(self._id.sql)
            raise

    def _built_summary(self) -> Any:
        """Return the summary of main's snapshot as it is after what was built."""
        if self._built is not None:
            return self._built.summary
        snapshot = self._transaction.currentMetadata().currentSnapshot()
        return snapshot.summary() if snapshot is not None else {}

    def _into_transaction(self, change: Any, summary: Mapping[str, str]) -> tuple[SnapshotId, int]:
        for key, value in summary.items():
            change.set(key, value)
        if is_local(self.location):
            change.scanManifestsWith(in_this_thread(self._jvm))
        if self._branch is not None:
            change.toBranch(self._branch)
        with self._forgetting():
            change.commit()  # into the transaction, not into the catalog
        self._built = None
        metadata = self._transaction.currentMetadata()
        snapshot = metadata.currentSnapshot()
        if self._branch is not None:
            snapshot = metadata.snapshot(metadata.ref(self._branch).snapshotId())
        return snapshot.snapshotId(), snapshot.sequenceNumber()

    def set(self, properties: Mapping[str, str]) -> None:
        """Set table properties in the same swap."""
        self._properties |= properties

    def swap(self) -> None:
        """Ask the catalog to replace the metadata that was read by the one that was built.

        Raises SwapFailed for every other answer than "done", and for none: nothing follows from the
        kind of the failure, only from reading the table again. Nothing is cleaned up.
        """
        try:
            with _swap_failed():
                self._begin()
                asked = {"properties": self._properties, "forgotten": self._forgotten}
                self._state.swap(json.dumps(asked))
        except SwapFailed:
            # Of a table that was made anew, some catalogs call the metadata as they called the old one's:
            # an object that is kept takes it for the one it knows.
            self._handles.forget(self._id.sql)
            raise

    @cached_property
    def sort_fields(self) -> tuple[SortField, ...]:
        """How the table wants its files sorted."""
        return self._metadata.sort_fields

    @property
    def tags(self) -> dict[str, SnapshotId]:
        """The table's tags, each with the snapshot that it names."""
        refs = self._base.refs()
        named = ((name, refs.get(name)) for name in each(refs.keySet()))
        return {name: ref.snapshotId() for name, ref in named if ref.isTag()}

    def descends(self, snapshot: SnapshotId, sequence: int) -> bool | None:
        """Tell whether main descends from a snapshot; None when nobody can tell any more.

        Where parents have been expired, the walk goes on in earlier metadata files of the table.
        """
        return self.history(snapshot, sequence).descends

    def history(self, snapshot: SnapshotId, sequence: int) -> History:
        """Return what happened since a snapshot, which has this sequence number."""
        if self.current == snapshot:
            return History((), True)
        known, current = self._base, self._base.currentSnapshot()
        earlier: list[str] | None = None
        newer: list[Any] = []

        def told(descends: bool | None) -> History:
            values = (read_snapshot(self._jvm, found) for found in reversed(newer))
            return History(tuple(value for value in values if value is not None), descends)

        while current is not None and current.snapshotId() != snapshot:
            parent = current.parentId()
            newer.append(current)
            # Tables of format version 1 number nothing: there only the walk itself can tell.
            if parent is None or (sequence and current.sequenceNumber() <= sequence):
                return told(False)
            found = known.snapshot(parent)
            while found is None:
                if earlier is None:
                    earlier = [entry.file() for entry in each(self._base.previousFiles())]
                if not earlier:
                    return told(None)
                try:
                    known = self._read_metadata(earlier.pop())
                except JvmFailure:
                    return told(None)  # removed by the table's own clean-up
                found = known.snapshot(parent)
            current = found
        return told(current is not None)

    def removed_data(self, snapshot: Snapshot) -> list[FileEntry] | None:
        """Return the data files that a snapshot took out of the table; None when nobody can tell."""
        try:
            return removed_data(self.store, snapshot.manifest_list, snapshot.id)
        except FileNotFoundError:
            return None  # expired

    def built_records(self) -> int | None:
        """Return how many rows the table has after what was built, as the snapshot's summary tells."""
        return _records(self._built_summary())

    def records_at(self, moment: datetime) -> int | None:
        """Return how many rows the table had at a moment; None when it had none yet, or nobody can tell."""
        answer = self._state.snapshotAt(int(moment.timestamp() * 1000))
        found = snapshot_of(json.loads(answer)) if answer is not None else None
        return _records(found.summary) if found is not None else None

    @property
    def sequence(self) -> int:
        """The sequence number of the current snapshot."""
        return self._metadata.snapshot.sequence if self._metadata.snapshot is not None else 0

    def last_snapshot_with(self, key: str, value: str) -> SnapshotId | None:
        """Return the newest known snapshot whose summary holds a value; staged ones do not count."""
        newest = None
        for snapshot in each(self._base.snapshots()):
            summary = snapshot.summary()
            if summary.get(key) != value:
                continue
            if summary.get(STAGED) is not None and snapshot.snapshotId() not in self._published():
                continue
            newest = snapshot.snapshotId()
        return newest

    def _published(self) -> frozenset[SnapshotId]:
        """Return the snapshots that main ever had, as far as the table remembers."""
        return frozenset(entry.snapshotId() for entry in each(self._base.snapshotLog()))

    def summary_at(self, snapshot: SnapshotId, key: str) -> str | None:
        """Return what a snapshot's summary, or the nearest one before it, says of a key."""
        current = self._base.snapshot(snapshot)
        while current is not None:
            value = current.summary().get(key)
            if value is not None:
                return str(value)
            parent = current.parentId()
            current = self._base.snapshot(parent) if parent is not None else None
        return None

    def landed(self, snapshot: SnapshotId, sequence: int) -> bool | None:
        """Tell whether a snapshot of an earlier attempt is in the table; None when nobody can tell.

        Every commit takes the next sequence number: where another snapshot has it, ours lost.
        """
        known = self._base.snapshot(snapshot)
        if known is not None:
            # One that was staged on a branch is in the metadata before it is in the table.
            return known.summary().get(STAGED) is None or snapshot in self._published()
        taken = any(other.sequenceNumber() == sequence for other in each(self._base.snapshots()))
        return False if taken and sequence else None

    def _read_metadata(self, location: str) -> Any:
        parser = iceberg(self._jvm, "TableMetadataParser")
        return parser.read(self._table.io(), location)


def _total_files(summary: Any) -> int:
    return int(summary.get("total-data-files") or 0)


def _records(summary: Any) -> int | None:
    """Return how many rows a snapshot has, as its summary tells."""
    if summary.get("total-records") is None:
        return None
    return int(summary.get("total-records")) - int(summary.get("total-position-deletes") or 0)


def _in_partition(spec: Spec, values: Sequence[Any]) -> Mapping[str, Any]:
    """Return a file of which only the partition counts."""
    return written_file(spec, location="nowhere", size=1, records=1, partition=values).document
