"""A run that is killed at a step: started by tests as a process of its own.

    python -m tests.scenarios.killed_run FOLDER STEP COUNT

kills its whole process group, Java included, with signal 9 when the run reaches STEP the COUNT-th time.
STEP may also be a number of seconds after planning: a random instant.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import esker
from esker.events import Event, Reached, Step


def kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(folder: str, step: str, count: int) -> None:
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

    esker.open(folder).run("sales", listen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
