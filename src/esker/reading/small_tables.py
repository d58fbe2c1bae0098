"""Tables of Esker's own that are small enough to be read whole, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esker.engine.iceberg.document import Document, Undecided
from esker.engine.iceberg.lookup import can_read, live_rows
from esker.errors import EskerError

_MOST_ROWS = 200_000


def all_rows(table: Document, columns: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return some columns of all rows. Raises Undecided for large tables, and files that only Java reads."""
    try:
        files = table.files
        if sum(file.records for file in files.data) > _MOST_ROWS:
            raise Undecided(f'table "{table.id}" is large')
        if not can_read(files, table.schema, files.data):
            raise Undecided(f'table "{table.id}" has files that only Java reads')
        found: list[Mapping[str, Any]] = live_rows(files, table.schema, files.data, columns).to_pylist()
    except (EskerError, FileNotFoundError) as error:
        raise Undecided(str(error)) from error
    return found
