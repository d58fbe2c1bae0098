"""The rows of some of a snapshot's files as a frame, with what was deleted of them left out.

Iceberg's own reader reads them. The door is the one that its compaction uses: tasks of a scan are put down
under a name, and a frame of that name reads these and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from esker.engine.cleanup import cleaning_up
from esker.engine.compat.staging import staging_name
from esker.engine.failures import explained
from esker.engine.iceberg.java import each, java_class, static_method
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.stage import LINEAGE
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.session import STAGING_CATALOG, Engine
from esker.engine.sql import identifier

_MANAGER = "org.apache.iceberg.spark.ScanTaskSetManager"
_CACHE = "org.apache.iceberg.spark.SparkTableCache"


class SnapshotFiles:
    """The files of a snapshot, planned once. Any thread may ask."""

    def __init__(self, engine: Engine, table: TableId, snapshot: SnapshotId) -> None:
        self._engine, self._table, self._snapshot = engine, table, snapshot

    @contextmanager
    def frame(self, paths: Iterable[str]) -> Iterator[DataFrame]:
        """Return the rows of some files, to be read before the block ends."""
        jvm: Any = self._engine.spark.sparkContext._jvm
        manager, cache = (static_method(jvm, name, "get")() for name in (_MANAGER, _CACHE))
        name = f"esker-{uuid4()}"
        with explained(f'cannot read files of table "{self._table}"', self._engine.log):
            table, tasks = self._planned
            chosen = java_class(jvm, "java.util.ArrayList")()
            for path in paths:
                chosen.add(tasks[path])
            manager.stageTasks(table, name, chosen)
            cache.add(name, table)

            def clear() -> None:
                cache.remove(name)
                manager.removeTasks(table, name)

            with cleaning_up(clear):
                reader = self._engine.spark.read.option("scan-task-set-id", name)
                rows = reader.table(identifier(STAGING_CATALOG, staging_name(name)))
                yield rows.drop(*LINEAGE)

    @cached_property
    def _planned(self) -> tuple[Any, dict[str, Any]]:
        """Iceberg's own object for the table, and a task for each file."""
        table = java_table(self._engine, self._table)
        scan = table.newScan().useSnapshot(self._snapshot).planFiles()
        with cleaning_up(scan.close):
            return table, {task.file().location(): task for task in each(scan)}
