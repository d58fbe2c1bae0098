"""Tags by which consumers say how far they are, moved without Spark."""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from esker.engine.iceberg.table_id import TableId
from esker.errors import CatalogUnreachable, SideTableLost
from esker.project.secrets import redact
from esker.reading.lake import Lake

_TRIES = 5


def move_tag(lake: Lake, log: TableId, name: str, snapshot: int | None) -> None:
    """Let a tag on a table name a snapshot, or remove it. Raises SideTableLost and CatalogUnreachable."""
    failure: Exception | None = None
    for _ in range(_TRIES):
        table = lake.writable(log.catalog, log.name)
        present = table.metadata.refs.get(name)
        if (present.snapshot_id if present is not None else None) == snapshot:
            return
        changes = table.manage_snapshots()
        try:
            if snapshot is None:
                changes.remove_tag(name).commit()
            else:
                changes.create_tag(snapshot, name).commit()
        except (CommitFailedException, CommitStateUnknownException) as error:
            failure = error  # somebody was faster, or it landed: look again
        except Exception as error:
            # Each catalog's client has errors of its own, without a common root.
            raise CatalogUnreachable(log.catalog, redact(str(error).partition("\n")[0])) from error
        else:
            return
    raise SideTableLost(str(log), f"the tag {name} could not be set: {failure}")
