"""What was found right before, as digests: it need not be looked at again while it is the same.

`declaration`: some mistakes only Spark finds, such as SQL in a contract that it does not understand. Where it
has run a pipeline as it is declared now, it need not be asked again. `files`: the files of a source that were
compared with the record of loaded files, and held nothing new. Losing either costs time, and nothing else.
"""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

from esker.ledger.state import State, checked

What = Literal["declaration", "files"]


def remember_checked(state: State, project: str, pipeline: str, what: What, digest: str) -> None:
    """Remember what was found right, in the place of what was before."""
    if is_checked(state, project, pipeline, what, digest):
        return
    with state.begin() as connection:
        connection.execute(checked.delete().where(_of(project, pipeline, what)))
        row = {"project": project, "pipeline": pipeline, "what": what, "digest": digest}
        connection.execute(checked.insert().values(**row))


def is_checked(state: State, project: str, pipeline: str, what: What, digest: str) -> bool:
    """Tell whether this was found right."""
    query = sa.select(checked.c.digest).where(_of(project, pipeline, what))
    with state.begin() as connection:
        return connection.execute(query).scalar() == digest


def _of(project: str, pipeline: str, what: What) -> sa.ColumnElement[bool]:
    return (checked.c.project == project) & (checked.c.pipeline == pipeline) & (checked.c.what == what)
