"""Tell how far the running Spark job has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from esker.engine.failures import JvmFailure
from esker.engine.iceberg.java import each
from esker.engine.session import Engine

_INTERVAL = 0.5


@contextmanager
def watched(engine: Engine, tell: Callable[[int, int], None]) -> Iterator[None]:
    """While the block runs, tell again and again how many rows and bytes its jobs have read."""
    done = threading.Event()
    context: Any = engine.spark.sparkContext._jsc.sc()

    def watch() -> None:
        while not done.wait(_INTERVAL):
            try:
                rows = size = 0
                for stage in each(context.statusStore().activeStages()):
                    rows, size = rows + stage.inputRecords(), size + stage.inputBytes()
            except JvmFailure:
                return  # Spark is going down; the block itself will say so
            if rows:
                tell(rows, size)

    thread = threading.Thread(target=watch, name="esker-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
