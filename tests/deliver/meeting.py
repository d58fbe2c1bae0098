"""A shelf whose senders wait for each other, and write down how much they were given at a time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from esker.deliver.targets.target import Message, Refused, Sender
from esker.errors import TargetUnavailable
from tests.deliver.shelf import Shelf, ShelfSender

_PATIENCE = 60


@dataclass(frozen=True)
class Meeting(Shelf):
    """Takes nothing before so many `senders` have come."""

    senders: int = 2

    def open(self) -> Sender:
        return _MeetingSender(self)

    def lots(self) -> list[list[int]]:
        """Return how many messages each sender was given at a time."""
        found: dict[str, list[int]] = {}
        with self.connected() as connection:
            for sender, messages in connection.execute("select * from given order by rowid").fetchall():
                found.setdefault(sender, []).append(messages)
        return list(found.values())


class _MeetingSender(ShelfSender):
    def __init__(self, meeting: Meeting) -> None:
        super().__init__(meeting)
        self._meeting, self._id = meeting, str(uuid.uuid4())
        with meeting.connected() as connection:
            connection.execute("create table if not exists given (sender text, messages int)")

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        with self._meeting.connected() as connection:
            connection.execute("insert into given values (?, ?)", (self._id, len(messages)))
        until = time.monotonic() + _PATIENCE
        while len(self._meeting.lots()) < self._meeting.senders:
            if time.monotonic() > until:
                raise TargetUnavailable(self._meeting.describe(), "nobody else came", 1)
            time.sleep(0.02)
        return super().send(messages)
