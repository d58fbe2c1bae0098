"""A delivery or a reindex that is killed: started by tests as a process of its own.

    python -m tests.scenarios.killed_delivery FOLDER POINT COUNT deliver
    python -m tests.scenarios.killed_delivery FOLDER POINT COUNT retry
    python -m tests.scenarios.killed_delivery FOLDER POINT COUNT reindex

delivers to consumer `search`, with `retry` its dead letters first, and kills the whole of it, Java and
Spark's Python workers included, with signal 9 when it reaches POINT the COUNT-th time: a step of a delivery,
one of `Point`, or a number of seconds after Spark has started. A consumer of files has the shelf beside the
project as its target.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import esker
from esker.deliver import reindex as reindexes
from esker.deliver.targets.target import Index
from esker.engine.iceberg.commit import Attempt
from esker.events import Delivered, DeliveryStep, Event
from esker.ledger.process import this_process
from esker.pipeline.api import OpenProject
from esker.pipeline.deliver import opened
from esker.project.targets.files import FilesTarget
from tests.deliver.shelf import Shelf
from tests.deliver.told import use
from tests.scenarios import mortal
from tests.scenarios.killed_run import kill
from tests.scenarios.mortal import Mortal


class Point(StrEnum):
    """Points that a delivery does not report."""

    LOT = "lot"
    """A lot of messages has arrived, sent by this process or one of Spark's."""
    WORKER = "worker"
    """The same, and only the process that sent it dies."""
    DRIVER = "driver"
    """The same, and only the process dies that delivers, without Java and Spark's workers."""
    BEFORE_SWAP = "before_swap"
    """Of any table: a tag, or dead letters."""
    AFTER_SWAP = "after_swap"
    MADE = "made"
    """A new index was made."""
    BEFORE_PLAN = "before_plan"
    """All that a reindex begins with is done, and not written down."""
    FORGOTTEN = "forgotten"
    """A reindex is done, and no longer written down."""


def main(folder: Path, point: str, count: int, act: str) -> None:
    seen = 0

    def reach(reached: str) -> None:
        nonlocal seen
        seen += reached == point
        if seen == count:
            kill()

    def listen(event: Event) -> None:
        if isinstance(event, Delivered):
            reach(event.step)

    project = esker.open(folder)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, _target(project, folder, point, count))
        _report(patch, Attempt, "swap", reach, Point.BEFORE_SWAP, Point.AFTER_SWAP)
        _report(patch, Mortal, "make", reach, None, Point.MADE)
        _report(patch, reindexes, "keep_plan", reach, Point.BEFORE_PLAN, None)
        _report(patch, reindexes, "forget_plan", reach, None, Point.FORGOTTEN)
        if point not in {*DeliveryStep, *Point}:
            _ = project.engine
            threading.Timer(float(point), kill).start()
        match act:
            case "deliver":
                project.deliver("search", listen)
            case "retry":
                project.deliver("search", listen, retry_dead=True)
            case "reindex":
                result = project.reindex("search", parallel=1, listen=listen)
                assert result.error is None, result.error


def _target(project: OpenProject, folder: Path, point: str, count: int) -> Mortal:
    cloudpickle.register_pickle_by_value(mortal)  # type: ignore[no-untyped-call]
    lots = folder / "lots"
    lots.unlink(missing_ok=True)
    index: Any = Shelf(folder / "shelf.db", forgets=True)
    if not isinstance(project.project.consumer("search").to, FilesTarget):
        index = opened(project.project, "search")
    assert isinstance(index, Index)
    last = count if point in (Point.LOT, Point.WORKER, Point.DRIVER) else 0
    group = None if point == Point.WORKER else os.getpgid(0)
    return Mortal(index, lots, last, group, this_process() if point == Point.DRIVER else None)


def _report(
    patch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    reach: Callable[[str], None],
    before: Point | None,
    after: Point | None,
) -> None:
    """Let a function tell that it begins, and that it is done."""
    function = getattr(place, name)

    def reported(*values: Any, **named: Any) -> Any:
        if before is not None:
            reach(before)
        found = function(*values, **named)
        if after is not None:
            reach(after)
        return found

    patch.setattr(place, name, reported)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
