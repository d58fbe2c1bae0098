"""Append staged files to a table of Esker's own, once, whatever becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping

from esker.engine.iceberg.commit import Attempt, SwapFailed
from esker.engine.iceberg.rounds import rounds
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.session import Engine
from esker.errors import EskerError, PublishConflict

_TRIES = 20


def append_once(engine: Engine, staged: StagedFiles, batch: str, summary: Mapping[str, str]) -> int:
    """Append files to their table, and return how many it has then. `batch` is unique to them.

    Raises PublishConflict.
    """
    failure: SwapFailed | None = None
    for may_try in rounds(_TRIES):
        try:
            attempt = Attempt(engine, staged.table)
        except EskerError:
            if not may_try:
                raise
            continue
        if failure and attempt.last_snapshot_with("esker.batch", batch) is not None:
            return attempt.data_files  # the answer was lost, the commit was not
        if not may_try:
            break
        try:
            attempt.append(staged, {"esker.batch": batch, **summary})
            files = attempt.built_files()
            attempt.swap()
        except SwapFailed as error:
            failure = error
        else:
            return files
    raise PublishConflict(str(staged.table), _TRIES, str(failure))
