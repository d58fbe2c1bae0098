"""What a pipeline can do with rows, and which of its keys mean something in which mode."""

from __future__ import annotations

from typing import Literal

Mode = Literal[
    "append", "replace", "replace_partitions", "upsert", "insert_only", "delete_insert", "sync", "scd2"
]
KEYED: tuple[Mode, ...] = ("upsert", "insert_only", "delete_insert", "sync", "scd2")
"""Modes that compare rows by key."""
WHOLE: tuple[Mode, ...] = ("replace", "sync")
"""Modes whose batch is all that the source holds."""
SWAPPING: tuple[Mode, ...] = (*WHOLE, "replace_partitions", "delete_insert")
"""Modes whose batch takes the place of rows that are stored: what is in two batches would lose the first."""
DELETING: tuple[Mode, ...] = ("upsert", "delete_insert", "sync", "replace")
"""Modes whose batches can be told how many rows they may delete."""
ROW_BY_ROW: tuple[Mode, ...] = ("append", "upsert", "insert_only")
"""Modes in which a row that is left out changes nothing for others."""
KEYED_ONLY = (
    "key",
    "order_by",
    "deletes",
    "deleted_column",
    "delete_when",
    "ignore_columns",
    "touch",
    "late",
)
"""Keys of a pipeline that only mean something where rows are compared by key."""
MEANINGLESS: dict[Mode, dict[str, str]] = {
    "delete_insert": {
        "order_by": "what a batch holds of a key replaces all that is stored, whatever its age",
        "deletes": "a key that is deleted has no rows any more",
        "touch": "there is no order_by",
        "late": "there is no order_by",
    },
    "scd2": {
        "deletes": "a delete ends the current version, and all versions stay",
        "touch": "what has not changed opens no version",
    },
    "replace": {
        "order_by": "what the source holds replaces all that is stored, whatever its age",
        "deletes": "what the source no longer has goes for good; mode sync keeps it, marked",
        "touch": "there is no order_by",
        "late": "there is no order_by",
    },
}
"""Keys that would do nothing in a mode, and why."""
