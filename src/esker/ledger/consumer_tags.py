"""Tags by which consumers say, on a table or its log, how far they are: nobody expires what lies behind."""

from __future__ import annotations

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import SideTableLost

_TRIES = 5


def move_tag(engine: Engine, log: TableId, name: str, snapshot: SnapshotId | None) -> None:
    """Let a tag on a table name a snapshot, or remove it. Raises SideTableLost."""
    failure: SwapFailed | None = None
    for _ in range(_TRIES):
        attempt = Attempt(engine, log)
        if attempt.tags.get(name) == snapshot:
            return
        try:
            if snapshot is None:
                attempt.drop_tag(name)
            else:
                attempt.tag(name, snapshot)
            attempt.swap()
        except SwapFailed as error:
            failure = error  # somebody was faster, or it landed: look again
        else:
            return
    raise SideTableLost(str(log), f"the tag {name} could not be set: {failure}")
