"""The history of a table's quality `<table>__quality`: what every check found, per run and snapshot.

It is filled from the outbox, like the change log: each publish leaves its figures exactly once. Those of a
batch that is held are written when it is held, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from esker.engine.iceberg.commit import Attempt
from esker.engine.iceberg.metadata import SnapshotId
from esker.engine.iceberg.stage import StagedFiles
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.ledger.logged import logged_in, logged_properties
from esker.ledger.side_table import QUALITY, OpenSide, SideTable, Stamp
from esker.ledger.upkeep import put_together
from esker.project.types import Column, Plain

QUALITY_COLUMNS = (
    Column("table", Plain("string"), doc="The table that was measured"),
    Column("changeset", Plain("bigint"), required=True, doc="The changeset that it was measured with"),
    Column("snapshot", Plain("bigint"), required=True, doc="The snapshot of the table"),
    Column("pipeline", Plain("string"), required=True),
    Column("run", Plain("string"), required=True),
    Column("metric", Plain("string"), required=True, doc="What was measured: record_count, a rule, an audit"),
    Column("kind", Plain("string"), required=True, doc="table, rule or audit"),
    Column("value", Plain("double"), doc="Of a rule: how many rows broke it"),
    Column("passed", Plain("boolean"), doc="Of an audit: whether it was as it must be"),
    Column("measured_at", Plain("timestamp"), required=True),
    Column("held", Plain("boolean"), doc="The batch was held: changeset and snapshot were never published"),
)


@dataclass(frozen=True)
class Measure:
    """One figure."""

    metric: str
    kind: Literal["table", "rule", "audit"]
    value: float | None
    passed: bool | None = None


class Quality(OpenSide):
    """The quality history of one table."""

    property = QUALITY

    def shared(self, stamp: Stamp) -> dict[str, Any]:
        return {
            "changeset": stamp.changeset,
            "pipeline": stamp.pipeline,
            "run": stamp.run,
            "measured_at": stamp.moment,
        }

    @classmethod
    def put_together(cls, engine: Engine, side: SideTable) -> None:
        """Put the files of a history together, once they are many. Every figure stays."""

        def marks(attempt: Attempt, snapshot: int, sequence: int) -> dict[str, str]:
            return logged_properties(logged_in(attempt.properties), snapshot, sequence)

        put_together(
            engine,
            side.id,
            lambda rows, is_whole: rows.sort_by([("changeset", "ascending"), ("metric", "ascending")]),
            marks=marks,
        )

    def write(
        self,
        table: TableId,
        measures: Sequence[Measure],
        snapshot: SnapshotId,
        stamp: Stamp,
        *,
        held: bool = False,
    ) -> StagedFiles:
        """Stage the figures of one publish of a table, or of a batch that is held."""
        rows = pa.table(
            {
                "table": pa.array([table.name] * len(measures), pa.string()),
                "snapshot": pa.array([snapshot] * len(measures), pa.int64()),
                "metric": pa.array([each.metric for each in measures], pa.string()),
                "kind": pa.array([each.kind for each in measures], pa.string()),
                "value": pa.array([each.value for each in measures], pa.float64()),
                "passed": pa.array([each.passed for each in measures], pa.bool_()),
                "held": pa.array([held] * len(measures), pa.bool_()),
            }
        )
        return self.stage(rows, stamp)
