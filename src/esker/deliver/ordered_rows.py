"""Changes that this process has read, in the order in which they are sent."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from esker.deliver.sending import ID
from esker.ledger.change_columns import CHANGESET, OP, ROW


def ordered(rows: pa.Table, ids: Sequence[str], *, newest: bool) -> pa.Table:
    """Return changes in order, or only the `newest` of each row; with the columns `ids` beside."""
    is_kept = pc.not_equal(rows.column(OP), "delete")
    rows = rows.append_column("_esker_kept", is_kept)
    order = [(CHANGESET, "ascending"), ("_esker_kept", "ascending"), (ROW, "ascending")]
    rows = rows.sort_by(order).drop_columns(["_esker_kept"])
    columns = [rows.column(name) for name in ids]
    if newest:
        places = _last_of_each(columns)
        rows, columns = rows.take(places), [column.take(places) for column in columns]
    for place, column in enumerate(columns):
        rows = rows.append_column(f"{ID}{place}", column)
    return rows


def _last_of_each(ids: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return the places of each id's last row. By Arrow, which has days that Python does not have."""
    names = [str(place) for place in range(len(ids))]
    found = pa.table([*ids, pa.array(range(len(ids[0])), pa.int64())], [*names, "place"])
    return found.group_by(names).aggregate([("place", "max")]).column("place_max").combine_chunks().sort()
