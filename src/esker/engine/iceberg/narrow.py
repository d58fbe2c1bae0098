"""Narrow columns of row groups that were read lately, so that batch after batch does not read them again.

Files of tables never change, so nothing kept here can be wrong; there is only too much of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import pyarrow as pa

from esker.engine.iceberg.data_file import DataFile
from esker.engine.iceberg.manifests import FileEntry

KEPT_BYTES = 256 * 2**20
"""The keys, hashes and order values of about three million rows."""

_Part = tuple[str, int, int, tuple[str, ...]]


class Kept:
    """Parts of files, those that were not asked for longest given up first. Any thread may ask."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._parts: OrderedDict[_Part, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def read(
        self, file: FileEntry, parquet: DataFile, groups: Sequence[int], columns: Sequence[str]
    ) -> pa.Table:
        """Return columns of row groups, in the order of the file."""
        parts = {group: (file.path, file.size, group, tuple(columns)) for group in groups}
        found = {group: table for group, part in parts.items() if (table := self._get(part)) is not None}
        missing = [group for group in groups if group not in found]
        if missing:
            read = parquet.read_row_groups(missing, columns)
            start = 0
            for group in missing:
                count = parquet.metadata.row_group(group).num_rows
                found[group] = read.slice(start, count)
                self._put(parts[group], found[group])
                start += count
        return pa.concat_tables([found[group] for group in groups])

    def _get(self, part: _Part) -> pa.Table | None:
        with self._lock:
            table = self._parts.get(part)
            if table is not None:
                self._parts.move_to_end(part)
            return table

    def _put(self, part: _Part, table: pa.Table) -> None:
        with self._lock:
            if part in self._parts or table.nbytes > self._limit:
                return
            self._parts[part] = table
            self._bytes += table.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._parts.popitem(last=False)[1].nbytes
