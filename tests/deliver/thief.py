"""A shelf with which somebody else takes the consumer's lease: as soon as the first lot has arrived."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from esker.deliver.targets.target import Message, Refused, Sender
from tests.deliver.shelf import Shelf, ShelfSender


@dataclass(frozen=True)
class Thief(Shelf):
    """Needs so many seconds for a lot."""

    state: Path = Path()
    pause: float = 0.5

    def open(self) -> Sender:
        return _ThiefSender(self)


class _ThiefSender(ShelfSender):
    def __init__(self, thief: Thief) -> None:
        super().__init__(thief)
        self._thief = thief

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        refused = super().send(messages)
        with closing(sqlite3.connect(self._thief.state, timeout=60)) as connection, connection:
            connection.execute("update esker_leases set holder = 'the next one'")
        time.sleep(self._thief.pause)
        return refused
