"""What was seen of a database's transactions by earlier runs: marks in the order of a cursor.

A mark says up to which value rows were there, and which transactions were running then. When all of these
have ended, no row up to that value can come any more. It is about work: losing marks only delays rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from esker.ledger.state import State, cursor_marks

PREPARED = "prepared "
"""How the names of prepared transactions begin."""
_MOST = 64
"""Marks that are kept. With more of them, every second one is left out: what is between waits longer."""


@dataclass(frozen=True)
class CursorMark:
    """The highest value of a cursor at a moment, and the transactions that have been running since then."""

    top: str
    waits: frozenset[str]

    @property
    def is_settled(self) -> bool:
        """No transaction that could add a row up to here is running any more."""
        return not self.waits

    def looked(self, running: frozenset[str], prepared: frozenset[str]) -> CursorMark:
        """Return the mark after another look; the running transactions were asked for before the prepared."""
        waits = self.waits & (running | prepared)
        if any(not name.startswith(PREPARED) for name in self.waits - waits):
            # A session's transaction that is gone may be one of the prepared: nothing tells which.
            waits |= prepared
        return replace(self, waits=waits)


def thinned(marks: Sequence[CursorMark]) -> list[CursorMark]:
    """Return marks without those that the newest settled one stands for, and not too many of them."""
    settled = max((number for number, mark in enumerate(marks) if mark.is_settled), default=0)
    kept = list(marks[settled:])
    return kept if len(kept) <= _MOST else [*kept[:-1:2], kept[-1]]


def read_marks(state: State, project: str, pipeline: str, source: str) -> list[CursorMark]:
    """Return the marks of a pipeline, oldest first; none where they were made for another source."""
    query = sa.select(cursor_marks.c.marks).where(
        cursor_marks.c.project == project,
        cursor_marks.c.pipeline == pipeline,
        cursor_marks.c.source == _digest(source),
    )
    with state.begin() as connection:
        text = connection.execute(query).scalar()
    return [CursorMark(each["top"], frozenset(each["waits"])) for each in json.loads(text or "[]")]


def keep_marks(state: State, project: str, pipeline: str, source: str, marks: Sequence[CursorMark]) -> None:
    """Keep marks in the place of those that are kept; where somebody else keeps theirs meanwhile, these get
    lost."""
    text = json.dumps([{"top": mark.top, "waits": sorted(mark.waits)} for mark in marks])
    key = (cursor_marks.c.project == project) & (cursor_marks.c.pipeline == pipeline)
    row = cursor_marks.insert().values(project=project, pipeline=pipeline, source=_digest(source), marks=text)
    with suppress(_SomebodyWasFaster), state.begin() as connection:
        connection.execute(cursor_marks.delete().where(key))
        try:
            connection.execute(row)
        except IntegrityError:
            raise _SomebodyWasFaster from None


class _SomebodyWasFaster(Exception):
    """`esker plan` takes no lease: it may keep marks while a run does."""


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
