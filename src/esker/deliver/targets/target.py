"""What every kind of target can do: take messages, and say which of them it refused.

A target is opened where messages are sent, in a task of Spark as well as in this process: what opens it is
plain values that can be pickled. Whatever is sent may be sent again, after a crash or by a task that Spark
repeats. A target that knows versions keeps the highest; to all others the same message comes twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self

Op = Literal["insert", "update", "delete", "undelete"]


class Message(NamedTuple):
    """One change of one row on its way to a target. A tuple, as millions of them are made."""

    id: str
    """Which row of the table, the same in every version: its key as text."""
    version: int
    """Grows with each change of a row. Of two messages with one id, the higher version is the newer one."""
    op: Op
    table: str
    changeset: int
    key: Mapping[str, Any]
    """The key's columns."""
    body: Mapping[str, Any] | None
    """What the transform made of the row, of values that JSON has; None for a delete, and for those who are
    only notified."""


@dataclass(frozen=True)
class Refused:
    """A message that a target does not take, however often it is sent."""

    message: Message
    reason: str


class Sender(ABC):
    """An open connection to a target. Closed at the end of a `with` block."""

    @abstractmethod
    def send(self, messages: Sequence[Message]) -> list[Refused]:
        """Send messages in their order, and return those that are refused; all others have arrived.

        What may pass (429, 5xx, a lost connection) is tried again here, a bounded number of times; then
        TargetUnavailable is raised. What has arrived in a newer version already counts as arrived.
        """

    def close(self) -> None:  # noqa: B027 (many hold nothing)
        """Give back what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Target(ABC):
    """A place that messages go to. Can be pickled, and holds no connection itself."""

    keeps_versions = False
    """It never replaces a newer version by an older one: of a row's changes, only the newest need be sent."""
    lot: ClassVar[int] = 1_000
    """Messages that it is given together, unless the consumer says otherwise."""

    @abstractmethod
    def open(self) -> Sender:
        """Connect, or raise TargetUnavailable."""

    @abstractmethod
    def describe(self) -> str:
        """Say where it is, for people, without secrets."""


class Index(Target):
    """A target that can be filled anew beside what it holds, and then switched to it."""

    keeps_versions = True

    @abstractmethod
    def begin(self) -> None:
        """Make the first index, unless there is one. Called while nothing was sent yet.

        Later, `open` raises IndexGone where there is none: an empty one in its place would look whole.
        """

    @abstractmethod
    def make(self, name: str) -> None:
        """Make a new, empty index like the present one, unless it is there.

        Raises IndexNotSwitchable where `switch` would: before anything is filled.
        """

    @abstractmethod
    def into(self, name: str) -> Index:
        """Return the same target with another index."""

    @abstractmethod
    def count(self) -> int:
        """Return how many documents can be found, after all that was sent."""

    @abstractmethod
    def switch(self, name: str) -> str | None:
        """Let the alias lead to another index, in one step; return where it led to before."""
