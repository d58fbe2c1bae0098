"""What steps report while they work: plain values, handed to whoever listens.

Steps never print, log or count for others. They report an event; the command line draws progress
from it, the run history stores it, and the crash tests stop the process at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """The points of a load, in order. Each is a place where a process may stop."""

    PLANNED = "planned"
    READ = "read"
    STAGED = "staged"
    RECORDED = "recorded"
    LOCATED = "located"
    WRITTEN = "written"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    BEFORE_LOG = "before_log"
    LOGGED = "logged"
    FINISHED = "finished"


@dataclass(frozen=True)
class Reached:
    """A run of a pipeline has reached a step."""

    pipeline: str
    step: Step
    detail: str = ""


@dataclass(frozen=True)
class Progressed:
    """Rows and bytes that the running step has read so far."""

    pipeline: str
    rows: int
    bytes: int
    total_bytes: int


class DeliveryStep(StrEnum):
    """The points of a delivery and of a reindex. Each is a place where a process may stop."""

    SENT = "sent"
    STORED = "stored"
    TAGGED = "tagged"
    PINNED = "pinned"
    TASK_SENT = "task_sent"
    TASK_DONE = "task_done"
    VERIFIED = "verified"
    MOVED = "moved"
    SWITCHED = "switched"


@dataclass(frozen=True)
class Delivered:
    """A delivery to a consumer, or its reindex, has reached a step."""

    consumer: str
    step: DeliveryStep
    detail: str = ""


Event = Reached | Progressed | Delivered
Listener = Callable[[Event], None]


def silent(event: Event) -> None:
    """Listen to nothing."""
