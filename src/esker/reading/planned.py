"""Which files of a snapshot must be read, with the deletes that concern each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import VoidTransform

from esker.engine.iceberg.manifests import FileEntry, LiveFiles, live_files
from esker.reading.filter import RowFilter
from esker.reading.lake import OpenTable
from esker.reading.pruning import Pruning
from esker.reading.readable import while_files_live
from esker.reading.rows import Part

_EQUALITY = 2


def files_at(
    table: OpenTable,
    snapshot: Snapshot | None,
    may_hold: Callable[[Mapping[str, Any]], bool] = lambda manifest: True,
) -> LiveFiles:
    """Return the files of a snapshot; manifests of which `may_hold` says no are not opened."""
    if snapshot is None:
        return LiveFiles()
    with while_files_live(snapshot.manifest_list):
        return live_files(table.store, snapshot.manifest_list, may_hold)


def wanted_files(
    table: OpenTable, snapshot: Snapshot | None, wanted: RowFilter | None
) -> tuple[LiveFiles, list[FileEntry]]:
    """Return the files of a snapshot, and of its data files those in which a wanted row may be."""
    if wanted is None:
        live = files_at(table, snapshot)
        return live, list(live.data)
    pruning = Pruning(table.metadata, wanted)
    live = files_at(table, snapshot, pruning.may_hold)
    return live, [file for file in live.data if pruning.may_match(file)]


def parts_of(table: OpenTable, live: LiveFiles, files: Iterable[FileEntry]) -> Iterator[Part]:
    """Yield data files with what is deleted in them."""
    by_value = [delete for delete in live.deletes if delete.content == _EQUALITY]
    specs = table.metadata.specs()
    for file in files:
        deletes = live.deletes_of(file)
        for delete in by_value:
            # Void fields are no partitions: a table of format version 1 keeps them for those it had.
            is_everywhere = all(isinstance(f.transform, VoidTransform) for f in specs[delete.spec_id].fields)
            is_here = (delete.spec_id, delete.partition) == (file.spec_id, file.partition)
            # A row that was written together with the delete is the new one, and stays.
            if delete.sequence > file.sequence and (is_everywhere or is_here):
                deletes.append(delete)
        yield Part.of(table.metadata, file, deletes)
