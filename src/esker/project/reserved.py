"""Names of columns that tables cannot have: Esker's own, and those of Iceberg's metadata columns."""

from __future__ import annotations

RESERVED_PREFIX = "_esker_"
HASH_COLUMN = "_esker_hash"
"""Column of tables that are loaded by key: tells whether the rest of the row changed."""

# Iceberg's MetadataColumns. A table may be created with them, but Spark then reads Iceberg's own value
# in their place, or cannot read the table at all.
_ICEBERG = {
    *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
    *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
}


def why_reserved(name: str) -> str | None:
    """Return why a column cannot have this name, in words; None for any other name."""
    if name.lower().startswith(RESERVED_PREFIX):
        return f"names that begin with {RESERVED_PREFIX} are reserved for Esker's own columns"
    if name.lower() in _ICEBERG:
        return f'"{name.lower()}" is a metadata column that Iceberg gives to every table'
    return None


def is_own(name: str) -> bool:
    """Tell whether a column is one of Esker's own."""
    return name.lower().startswith(RESERVED_PREFIX)


TRASH, BACKUPS = "_esker/trash/", "_esker/backups/"
"""Folders of a warehouse for what is no longer, or not yet, part of a table. No table lies below `_esker`."""
