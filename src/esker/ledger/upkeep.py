"""Tables of Esker's own that get a small file with every run are put together by the runs themselves.

Many small files are replaced by one, in one compare-and-swap of the very metadata that they were read of;
rows that no longer mean anything are left out. Then old snapshots are expired: each stands in every metadata
file that is written from then on. What cannot be done now is done another time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.expiry import expire_snapshots
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.engine.iceberg.manifests import FileEntry
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine

MANY_FILES = 20
"""From so many small files on, they are put together."""
_LARGE = 16 * 2**20
"""Files of so many bytes are left as they are."""
_MOST = 64 * 2**20
"""Bytes that are read at a time."""
_KEPT_SNAPSHOTS = 20
KEPT_FOR = timedelta(hours=1)
"""How long a snapshot is kept at least, for those who are reading it."""

Keep = Callable[[pa.Table, bool], pa.Table]
"""Returns the rows that are still needed of those that were read, which are all of the table or not."""
Marks = Callable[[Attempt, int, int], Mapping[str, str]]
"""Returns properties for the table that name the new snapshot and its sequence number."""


def put_together(
    engine: Engine,
    table: TableId,
    keep: Keep = lambda rows, is_whole: rows,
    *,
    is_old: Callable[[Attempt, FileEntry], bool] = lambda attempt, file: False,
    marks: Marks = lambda attempt, snapshot, sequence: {},
) -> None:
    """Put the small files of a table together, once they are many.

    Large files with nothing in them that is still needed, of which `is_old` is true, are taken out with them.
    """
    # The run itself is done: whatever goes wrong in here must not make it fail.
    with suppress(Exception):
        attempt = Attempt(engine, table)
        if attempt.data_files < MANY_FILES:
            return
        if _rewrite(attempt, keep, is_old, marks):
            expire_old(engine, table)


def expire_old(engine: Engine, table: TableId) -> None:
    """Expire the snapshots of a table of Esker's own that nobody reads any more."""
    expire_snapshots(engine, table, keep=_KEPT_SNAPSHOTS, before=datetime.now(UTC) - KEPT_FOR)


def _rewrite(
    attempt: Attempt,
    keep: Keep,
    is_old: Callable[[Attempt, FileEntry], bool],
    marks: Marks,
) -> bool:
    files = attempt.files
    small: list[FileEntry] = []
    size = 0
    for file in sorted(files.data, key=lambda file: file.size):
        size += file.size
        if file.size >= _LARGE or size > _MOST:
            break
        small.append(file)
    paths = {file.path for file in small}
    old = [file for file in files.data if file.path not in paths and is_old(attempt, file)]
    if len(small) < MANY_FILES or not can_read(files, attempt.schema, small):
        return False
    rows = keep(live_rows(files, attempt.schema, small), len(small) + len(old) == len(files.data))
    batch = str(uuid4())
    staged = [attempt.write(rows, batch)] if len(rows) else []
    snapshot, sequence = attempt.rewrite([*small, *old], staged, {"esker.batch": batch})
    if properties := marks(attempt, snapshot, sequence):
        attempt.set(properties)
    attempt.swap()
    return True
