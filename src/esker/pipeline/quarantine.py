"""Rows in quarantine: look at them, load them again, or leave them for good."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.evolution import find
from esker.engine.compat import is_strict_json, snapshot_frame
from esker.engine.failures import explained
from esker.engine.iceberg.table import TableId, find_table
from esker.engine.session import Engine
from esker.errors import EskerError, NotInQuarantine, PipelineBusy, ReplayUnsuitable
from esker.events import Listener, silent
from esker.ledger.leases import LeaseTaken, held
from esker.ledger.outbox import drain
from esker.ledger.quarantine import DISCARDED, open_rows, resolutions
from esker.ledger.run_id import new_run_id
from esker.ledger.state import State
from esker.load.unknown import NEW_COLUMN
from esker.pipeline.resolve import resolve
from esker.pipeline.result import RunResult
from esker.pipeline.run import Start, run_pipeline
from esker.pipeline.tables import quarantine_of, table_of
from esker.pipeline.tables_by_spark import as_mapping
from esker.pipeline.waiting import Waiting
from esker.project import Project
from esker.project.reserved import is_own
from esker.project.types import Array, Column, Map, Struct
from esker.sources.quarantined import QuarantinedRows

_REPLAYABLE = ("append", "upsert", "insert_only", "sync", "scd2")


@dataclass(frozen=True)
class Choice:
    """Which rows of a quarantine are meant. Nothing chosen means all that wait."""

    rule: str | None = None
    changeset: int | None = None
    ids: Sequence[str] = field(default_factory=tuple)

    def of(self, rows: DataFrame) -> DataFrame:
        if self.rule is not None:
            rows = rows.where(F.array_contains("rules", self.rule))
        if self.changeset is not None:
            rows = rows.where(F.col("changeset") == self.changeset)
        if self.ids:
            rows = rows.where(_id().isin(list(self.ids)))
        return rows


def list_waiting(engine: Engine, pipelines: Sequence[str]) -> list[Waiting]:
    """Return what waits in the quarantines of these pipelines."""
    found = []
    for name in pipelines:
        table = table_of(engine.project, engine.project.pipeline(name))
        with suppress(EskerError):  # whoever may not write sees what is there
            _settle(engine, table)
        rows = _open(engine, table, name)
        if rows is None:
            continue
        with explained(f'cannot read the quarantine of "{table}"', engine.log):
            groups = (
                rows.groupBy("rules")
                .agg(
                    F.count(F.lit(1)).alias("rows"),
                    F.min("quarantined_at").alias("first"),
                    F.max("quarantined_at").alias("last"),
                    F.min("reason").alias("example"),
                )
                .orderBy(F.desc("rows"), "rules")
                .collect()
            )
        found += [
            Waiting(str(table), name, tuple(g["rules"]), g["rows"], g["first"], g["last"], g["example"])
            for g in groups
        ]
    return found


def show_waiting(engine: Engine, name: str, choice: Choice, limit: int) -> list[Mapping[str, Any]]:
    """Return rows that wait, newest first: id, rules, reason, payload, where and when."""
    table = table_of(engine.project, engine.project.pipeline(name))
    with suppress(EskerError):
        _settle(engine, table)
    rows = _open(engine, table, name)
    if rows is None:
        return []
    shown = choice.of(rows).orderBy(F.desc("changeset"), "row").limit(limit)
    with explained("cannot read the quarantine", engine.log):
        found = shown.select(
            _id().alias("id"), "rules", "reason", "payload", "origin", "run", "quarantined_at"
        ).collect()
    return [as_mapping(row) for row in found]


def replay(
    project: Project, start: Start, state: State, name: str, choice: Choice, listen: Listener = silent
) -> RunResult:
    """Check rows that wait with today's contract and load them. Those that are still bad go on waiting.

    Errors are in the result, as of a run. Raises ReplayUnsuitable or NotInQuarantine.
    """
    pipeline = project.pipeline(name)
    if pipeline.mode not in _REPLAYABLE:
        raise ReplayUnsuitable(name, pipeline.mode)
    engine = start()
    table = table_of(project, pipeline)
    engine.open_catalog(table.catalog)
    present = find_table(engine, table)
    if present is None:
        raise NotInQuarantine(name, "There is no table yet.")
    columns = tuple(column for column in present.columns if not is_own(column.name))

    def choose() -> tuple[DataFrame, int]:
        return _readable(engine, table, name, choice, columns)

    source = QuarantinedRows(choose, columns)
    result = run_pipeline(project, start, state, name, listen, source)
    if isinstance(result.error, NotInQuarantine):
        raise result.error
    return result


def _readable(
    engine: Engine, table: TableId, name: str, choice: Choice, columns: tuple[Column, ...]
) -> tuple[DataFrame, int]:
    """Return the chosen rows that can be loaded again, and how many they are, or raise NotInQuarantine."""
    rows = _chosen(engine, table, name, choice)
    # A record that could not be parsed has no columns: only the source itself can send it again.
    readable = rows.where(F.col("payload").startswith("{") & is_strict_json(F.col("payload")))
    for reason in _lacking(readable, columns):
        readable = readable.where(~(F.array_contains("rules", NEW_COLUMN) & (F.col("reason") == reason)))
    count = readable.count()
    if not count:
        why = "They could not be parsed in the source, or have columns that the table still lacks."
        raise NotInQuarantine(name, f"None of the rows can be loaded: {why[0].lower()}{why[1:]}")
    return readable, count


def _lacking(rows: DataFrame, columns: tuple[Column, ...]) -> list[str]:
    """Return why rows were left out whose columns the table still lacks: they would be lost by a replay."""
    reasons = rows.where(F.array_contains("rules", NEW_COLUMN)).select("reason").distinct().collect()
    return [
        row["reason"]
        for row in reasons
        if not all(_has(columns, path.split(".")) for path in re.findall(r'"([^"]+)"', row["reason"]))
    ]


def _has(columns: tuple[Column, ...], path: Sequence[str]) -> bool:
    found = find(columns, path[0])
    if found is None or len(path) == 1:
        return found is not None
    kind = found.type
    rest = list(path[1:])
    while isinstance(kind, Array | Map):
        kind = kind.element if isinstance(kind, Array) else kind.value
        rest = rest[1:]
    return not rest or (isinstance(kind, Struct) and _has(kind.fields, rest))


def discard(project: Project, start: Start, state: State, name: str, choice: Choice) -> int:
    """Leave rows that wait for good; return how many. Raises NotInQuarantine or PipelineBusy."""
    table = table_of(project, project.pipeline(name))
    try:
        with held(state, f"{project.state_key}/{name}"):
            engine = start()
            rows = _chosen(engine, table, name, choice)
            count = rows.count()
            resolve(engine, name, table, resolutions(rows, DISCARDED), new_run_id())
            return count
    except LeaseTaken as taken:
        raise PipelineBusy(name, taken.holder) from None


def _settle(engine: Engine, table: TableId) -> None:
    """Write what was published and has not got there yet: a row that was replayed waits no longer."""
    engine.open_catalog(table.catalog)
    if (stored := find_table(engine, table)) is not None:
        drain(engine, table, stored.properties)


def _open(engine: Engine, table: TableId, name: str) -> DataFrame | None:
    """Return the rows of a pipeline that wait, at the newest snapshot of the quarantine."""
    engine.open_catalog(table.catalog)
    quarantine = quarantine_of(engine.project, table)
    present = find_table(engine, quarantine)
    if present is None or present.snapshot is None:
        return None
    # At one snapshot: rows that a replay puts there are not those that it was asked for.
    rows = snapshot_frame(engine.spark, quarantine.sql, present.snapshot.id)
    return open_rows(rows).where(F.col("pipeline") == name)


def _chosen(engine: Engine, table: TableId, name: str, choice: Choice) -> DataFrame:
    _settle(engine, table)
    waiting = _open(engine, table, name)
    rows = choice.of(waiting) if waiting is not None else None
    if rows is None or rows.isEmpty():
        raise NotInQuarantine(name, "No row of it waits, or none that was chosen.")
    return rows


def _id() -> Any:
    return F.concat_ws("-", "changeset", "row")
