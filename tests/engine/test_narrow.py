"""Parts of files are kept within bounds, and are what the files hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esker.engine.iceberg.data_file import DataFile, opened
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.narrow import Kept
from esker.engine.store import LOCAL

ROWS = pa.table({"id": range(100), "hash": range(100, 200), "text": ["x" * 50] * 100})


class Counting:
    """A file that counts the row groups that are read from it."""

    def __init__(self, file: DataFile) -> None:
        self.metadata, self.schema_arrow, self.iter_batches = (
            file.metadata,
            file.schema_arrow,
            file.iter_batches,
        )
        self._file, self.read = file, 0

    def read_row_groups(self, groups: list[int], columns: Sequence[str] | None) -> pa.Table:
        self.read += len(groups)
        return self._file.read_row_groups(groups, columns)


@pytest.fixture
def entry(tmp_path: Path) -> FileEntry:
    path = tmp_path / "data.parquet"
    pq.write_table(ROWS, path, row_group_size=10)
    size = path.stat().st_size
    return FileEntry(0, f"file://{path}", "PARQUET", 100, size, 1, 1, 1, 0, (), {}, {}, None, None, None)


def test_row_groups_are_read_once(entry: FileEntry) -> None:
    """Whatever was read before, the rows come in the order of the file."""
    kept = Kept()
    with opened(LOCAL, entry) as file:
        counting = Counting(file)
        for groups in ([3, 4], [2, 3, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 9]):
            parts = kept.read(entry, counting, groups, ["id", "hash"])
            found = pa.concat_tables([part.rows for part in parts])
            expected = [number for group in groups for number in range(10 * group, 10 * group + 10)]
            assert found.column("id").to_pylist() == expected
        assert counting.read == 10
        [part] = kept.read(entry, counting, [5], ["text"])
        assert part.rows.num_rows == 10
        assert counting.read == 11


def test_what_was_not_asked_for_longest_is_given_up(entry: FileEntry) -> None:
    """There is room for four row groups; a part that is larger than all the room is not kept."""
    kept = Kept(limit=4 * 170)
    with opened(LOCAL, entry) as file:
        counting = Counting(file)
        for group in (0, 1, 2, 3, 0, 4, 0):
            kept.read(entry, counting, [group], ["id", "hash"])
        assert counting.read == 5
        kept.read(entry, counting, [1], ["id", "hash"])
        assert counting.read == 6
        [part] = Kept(limit=10).read(entry, counting, [1], ["id"])
        assert part.rows.num_rows == 10
