"""A call about batches and bad rows that is killed: started by tests as a process of its own.

    python -m tests.scenarios.killed_call FOLDER POINT COUNT ACT [RULE]

runs, approves, rejects, replays or discards (ACT) for pipeline `sales`, of the quarantine only rows that
break RULE, and kills its whole process group, Java included, with signal 9 when it reaches POINT the
COUNT-th time: a step of a load, or `before_swap` or `after_swap` of any table. Staging on a branch, a
rejection and a discard report no step, and are such swaps. POINT may also be a number of seconds after
Spark has started: a random instant.
"""

from __future__ import annotations

import sys
import threading
from enum import StrEnum
from unittest.mock import patch

import esker
from esker.engine.iceberg.commit import Attempt
from esker.events import Event, Listener, Reached, Step
from esker.pipeline.api import OpenProject
from esker.pipeline.quarantine import Choice
from tests.scenarios.killed_run import kill


class Swap(StrEnum):
    """Points around a compare-and-swap of a table."""

    BEFORE = "before_swap"
    AFTER = "after_swap"


def main(folder: str, point: str, count: int, act: str, rule: str | None = None) -> None:
    seen = 0
    swap = Attempt.swap

    def reach(reached: str) -> None:
        nonlocal seen
        seen += reached == point
        if seen == count:
            kill()

    def listen(event: Event) -> None:
        if isinstance(event, Reached):
            reach(event.step)

    def reported(attempt: Attempt) -> None:
        reach(Swap.BEFORE)
        swap(attempt)
        reach(Swap.AFTER)

    project = esker.open(folder)
    if point not in {*Step, *Swap}:
        _ = project.engine
        threading.Timer(float(point), kill).start()
    with patch.object(Attempt, "swap", reported):
        call(project, act, Choice(rule), listen)


def call(project: OpenProject, act: str, choice: Choice, listen: Listener) -> None:
    match act:
        case "run":
            project.run("sales", listen)
        case "approve":
            project.approve("sales", listen)
        case "reject":
            project.reject("sales")
        case "replay":
            project.replay("sales", choice, listen)
        case "discard":
            project.discard("sales", choice)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
