"""A target whose senders die: the process that hands a certain lot over is killed once it has arrived.

Tests hand it to Spark's tasks by value, as those may not find the tests: it needs nothing of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from esker.deliver.targets.target import Index, Message, Refused, Sender
from esker.ledger.process import is_gone


@dataclass(frozen=True)
class Mortal(Index):
    """Another index, until a lot has arrived that all processes count together."""

    index: Index
    lots: Path
    """A file with a byte for each lot."""
    last: int
    """The number of the lot that is somebody's last."""
    group: int | None
    """The process group that dies with whoever sends, the driver's; None: nobody does."""
    driver: str | None = None
    """The process that dies in the place of whoever sends: the driver without Java and Spark's workers."""

    def open(self) -> Sender:
        return _MortalSender(self.index.open(), self)

    def describe(self) -> str:
        return self.index.describe()

    def begin(self) -> None:
        self.index.begin()

    def make(self, name: str) -> None:
        self.index.make(name)

    def into(self, name: str) -> Mortal:
        return replace(self, index=self.index.into(name))

    def count(self) -> int:
        return self.index.count()

    def switch(self, name: str) -> str | None:
        return self.index.switch(name)

    def arrived(self) -> None:
        """Count a lot, and die if it is the last one."""
        place = os.open(self.lots, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(place, b".")
        number = os.lseek(place, 0, os.SEEK_CUR)  # where it stands, also when others write
        os.close(place)
        if number != self.last:
            return
        if self.driver is not None:
            os.kill(int(self.driver.split(" ")[1]), signal.SIGKILL)
            while not is_gone(self.driver):
                time.sleep(0.01)
        elif self.group is None:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            # Spark's Python workers have a group of their own.
            for group in (self.group, os.getpgid(0)):
                os.killpg(group, signal.SIGKILL)


class _MortalSender(Sender):
    def __init__(self, sender: Sender, mortal: Mortal) -> None:
        self._sender, self._mortal = sender, mortal

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        refused = self._sender.send(messages)
        self._mortal.arrived()
        return refused

    def close(self) -> None:
        self._sender.close()
