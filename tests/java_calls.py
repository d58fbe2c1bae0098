"""Count what a piece of work asks of Java, of Spark and of the state database."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from esker.pipeline.api import OpenProject

_OBJECT = re.compile(r"o\d+")
_FORGET = "m\n"
"""Begins a message that Java may forget an object: another thread sends it, and nobody waits for it."""


@dataclass
class Asked:
    """What was asked, each in the order of the questions."""

    calls: list[str] = field(default_factory=list)
    """The calls: the last words of each message to Java that was waited for."""
    jobs: int = 0
    """Spark jobs."""
    transactions: int = 0
    """Transactions of the state database."""

    @property
    def by_name(self) -> Counter[str]:
        """How often each was called."""
        return Counter(self.calls)


@contextmanager
def asked(project: OpenProject) -> Iterator[Asked]:
    """Count while the block runs. Spark has started."""
    context: Any = project.engine.spark.sparkContext
    client: Any = context._gateway._gateway_client
    found = Asked()
    send = client.send_command

    def counted(command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith(_FORGET):
            found.calls.append(_called(command))
        return send(command, *arguments, **named)

    def begun(_: sa.Connection) -> None:
        found.transactions += 1

    state: Any = project.state
    jobs = context._jsc.sc().dagScheduler().numTotalJobs()
    sa.event.listen(state._engine, "begin", begun)
    client.send_command = counted
    try:
        yield found
    finally:
        del client.send_command
        sa.event.remove(state._engine, "begin", begun)
        found.jobs = context._jsc.sc().dagScheduler().numTotalJobs() - jobs


def _called(command: str) -> str:
    """Return what a message is about: `c o12 commit`, `r m java.util.ArrayList`."""
    kind, *words = command.split("\n")
    return " ".join([kind, *(word for word in words[:2] if not _OBJECT.fullmatch(word))])
