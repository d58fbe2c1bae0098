"""Narrow columns of row groups that were read lately, so that batch after batch does not read them again.

Files of tables never change, so nothing kept here can be wrong; there is only too much of it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from esker.engine.iceberg.data_file import DataFile
from esker.engine.iceberg.manifests import FileEntry

KEPT_BYTES = 256 * 2**20
"""The keys, hashes and order values of about six million rows with short keys."""

_Name = tuple[str, int, int, tuple[str, ...]]


class Part:
    """Columns of one row group."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._sorted: dict[str, bool] = {}

    def is_sorted(self, column: str) -> bool:
        """Tell whether no row is lower than the one before it, and none is null. It is looked at once."""
        if column not in self._sorted:
            values = self.rows.column(column)
            in_order = pc.less_equal(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
            self._sorted[column] = not values.null_count and pc.all(in_order, min_count=0).as_py()
        return self._sorted[column]


class Kept:
    """Parts of files, those that were not asked for longest given up first. Any thread may ask."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._parts: OrderedDict[_Name, Part] = OrderedDict()
        self._files: Counter[str] = Counter()
        self._bytes = 0
        self._lock = Lock()

    def read(
        self, file: FileEntry, parquet: DataFile, groups: Sequence[int], columns: Sequence[str]
    ) -> list[Part]:
        """Return columns of row groups, in the order of the file."""
        names = {group: (file.path, file.size, group, tuple(columns)) for group in groups}
        found = {group: part for group, name in names.items() if (part := self._get(name)) is not None}
        missing = [group for group in groups if group not in found]
        for group, part in zip(missing, read_parts(parquet, missing, columns), strict=True):
            found[group] = part
            self._put(names[group], part)
        return [found[group] for group in groups]

    def knows(self, file: FileEntry) -> bool:
        """Tell whether parts of a file are kept."""
        with self._lock:
            return file.path in self._files

    def _get(self, name: _Name) -> Part | None:
        with self._lock:
            part = self._parts.get(name)
            if part is not None:
                self._parts.move_to_end(name)
            return part

    def _put(self, name: _Name, part: Part) -> None:
        with self._lock:
            if name in self._parts or part.rows.nbytes > self._limit:
                return
            self._parts[name] = part
            self._files[name[0]] += 1
            self._bytes += part.rows.nbytes
            while self._bytes > self._limit:
                (path, *_), oldest = self._parts.popitem(last=False)
                self._bytes -= oldest.rows.nbytes
                self._files[path] -= 1
                if not self._files[path]:
                    del self._files[path]


def read_parts(parquet: DataFile, groups: Sequence[int], columns: Sequence[str] | None) -> list[Part]:
    """Read columns of row groups, in the order of the file."""
    if not groups:
        return []
    read = parquet.read_row_groups(list(groups), columns)
    parts = []
    start = 0
    for group in groups:
        count = parquet.metadata.row_group(group).num_rows
        # Copies: a slice would hold on to what was read with it.
        columns_here = [_copied(column) for column in read.slice(start, count).columns]
        parts.append(Part(pa.table(columns_here, schema=read.schema)))
        start += count
    return parts


def _copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow's combine_chunks leaves one chunk where it is.
    return pa.chunked_array([pa.concat_arrays(column.chunks)] if column.num_chunks else [], column.type)
