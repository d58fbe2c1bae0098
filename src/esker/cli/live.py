"""Show a run while it goes on: a moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from esker.cli.output import console, end_with, tell
from esker.events import Event, Listener, Progressed, Reached, Step
from esker.observe.progress import Meter

if TYPE_CHECKING:
    from esker.pipeline.result import RunResult

_WORDS = {
    Step.PLANNED: "planned",
    Step.READ: "reading",
    Step.STAGED: "staged",
    Step.RECORDED: "recorded",
    Step.LOCATED: "compared",
    Step.WRITTEN: "written",
    Step.BEFORE_COMMIT: "publishing",
    Step.AFTER_COMMIT: "published",
    Step.BEFORE_LOG: "logging changes",
    Step.LOGGED: "changes logged",
}


@contextmanager
def live() -> Iterator[Listener]:
    """Return a listener that shows events on standard error."""
    if not sys.stderr.isatty():
        yield _lines
        return
    with console(stderr=True).status("starting…") as status:
        meter = Meter()

        def listen(event: Event) -> None:
            nonlocal meter
            match event:
                case Reached(pipeline, step, detail) if step in _WORDS:
                    if step is Step.READ:
                        meter = Meter()
                    status.update(f"{pipeline}: {_WORDS[step]} {detail}")
                case Progressed(pipeline):
                    status.update(f"{pipeline}: loading {meter.pace(event)}")

        yield listen


def run_live(run: Callable[[Listener], RunResult], *, as_json: bool) -> NoReturn:
    """Run one pipeline, show how it goes, print its result and end the process."""
    from esker.pipeline.result import RunReport

    with live() as listen:
        result = run(listen)
    end_with(RunReport([result]), as_json=as_json)


def _lines(event: Event) -> None:
    match event:
        case Reached(pipeline, Step.READ | Step.AFTER_COMMIT as step, detail):
            tell(f"{pipeline}: {_WORDS[step]} {detail}")
