"""What changed in a table: its change log between two points, read with Spark."""

from __future__ import annotations

from esker.changes.spark import SparkLog
from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.change_log import CHANGESET, ROW
from esker.ledger.point import Point
from esker.pipeline.change_report import Changes
from esker.pipeline.tables_by_spark import as_mapping


def read_changes(
    engine: Engine, table: TableId, since: Point | None, until: Point | None, limit: int
) -> Changes:
    """Return the changes after one point, up to and including another.

    Raises TableNotFound, NoChangeLog, UnknownPoint, ChangesForgotten or ChangesMissing.
    """
    log = SparkLog.open(engine, table)
    first, last = log.between(since, until)
    frame = log.changes(first, last)
    with explained(f'cannot read the changes of table "{table}"', engine.log):
        count = frame.count()
        rows = [as_mapping(row) for row in frame.orderBy(CHANGESET, ROW).limit(limit).collect()]
    return Changes(str(table), first, last, tuple(frame.columns), rows, count)
