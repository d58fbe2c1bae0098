"""A run that is killed at a step: started by tests as a process of its own.

    python -m tests.scenarios.killed_run FOLDER STEP COUNT run PIPELINE
    python -m tests.scenarios.killed_run FOLDER STEP COUNT sql STATEMENT
    python -m tests.scenarios.killed_run FOLDER STEP COUNT adopt TABLE

kills its whole process group, Java included, with signal 9 when the run reaches STEP the COUNT-th time.
STEP may also be a number of seconds after planning: a random instant. The steps of an adoption are before
and after its commit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from unittest.mock import patch

import esker
from esker.engine.iceberg.commit import Attempt
from esker.events import Event, Reached, Step


def kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(folder: str, step: str, count: int, act: str, what: str) -> None:
    seen = 0

    def listen(event: Event) -> None:
        nonlocal seen
        if not isinstance(event, Reached):
            return
        if event.step == step:
            seen += 1
            if seen == count:
                kill()
        elif event.step is Step.PLANNED and step not in set(Step):
            threading.Timer(float(step), kill).start()

    project = esker.open(folder)
    match act:
        case "run":
            project.run(what, listen)
        case "sql":
            project.sql(what, listen)
        case "adopt":
            with patch.object(Attempt, "swap", _dying(step)):
                project.adopt(what)


def _dying(step: str) -> Callable[[Attempt], None]:
    """Return a swap that dies before or after it is done."""
    swap = Attempt.swap

    def dying(attempt: Attempt) -> None:
        if step == Step.BEFORE_COMMIT:
            kill()
        swap(attempt)
        kill()

    return dying


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
