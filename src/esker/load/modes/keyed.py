"""Modes whose rows have a key: a batch is compared with what is stored, and only what differs is written."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from esker.contracts.check import BAD
from esker.contracts.evolution import find
from esker.engine.compat import to_arrow
from esker.engine.failures import explained
from esker.engine.iceberg.commit import Attempt
from esker.engine.progress import watched
from esker.engine.store import can_reach
from esker.errors import BadRows, Held
from esker.ledger.change_log import LogRun
from esker.ledger.delete_memory import DeleteMemory
from esker.load.batch import Batch, Loading
from esker.load.counts import RowCounts
from esker.load.diff import KeyRules
from esker.load.incoming import ARRIVAL, DELETED, DeleteMark, incoming
from esker.load.lanes.large import LargeBatch
from esker.load.lanes.small import SmallBatch
from esker.load.memory import Memory
from esker.load.publish import Change
from esker.project.pipelines import Pipeline
from esker.project.types import Column
from esker.sources import ORIGIN

NO_KEY = "key"
"""The rule that a row without a key breaks."""


def rules_of(pipeline: Pipeline, columns: tuple[Column, ...]) -> KeyRules:
    """Return how a pipeline compares rows, with columns named as the table names them."""

    def named(name: str) -> str:
        column = find(columns, name)
        return column.name if column is not None else name

    return KeyRules(
        key=tuple(named(name) for name in pipeline.key),
        order_by=named(pipeline.order_by) if pipeline.order_by is not None else None,
        deleted_column=named(pipeline.deleted_column) if pipeline.deletes == "soft" else None,
        ignored=tuple(pipeline.ignore_columns),
        touches=pipeline.touch,
        only_inserts=pipeline.mode == "insert_only",
        is_complete=pipeline.mode == "sync",
    )


@dataclass(frozen=True)
class Keyed:
    """Loads batches by key: upsert, insert_only, sync. Small ones in this process, others with Spark."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        attempt = Attempt(self.loading.engine, self.loading.table)
        if self._may_be_small(batch, attempt):
            rows, deletes, origins = self._rows(batch, attempt)
            if len(rows) <= self._most_rows:
                return self._small(batch, attempt, rows, deletes, origins)
        return self._large(batch, attempt)

    @property
    def _most_rows(self) -> float:
        pipeline = self.loading.pipeline
        return math.inf if pipeline.lane == "small" else pipeline.small_lane.max_rows

    def _may_be_small(self, batch: Batch, attempt: Attempt) -> bool:
        """Tell whether the batch fits into this process, and the process can work on the table's files."""
        pipeline = self.loading.pipeline
        if pipeline.lane == "large" or not can_reach(attempt.location) or not attempt.schema.is_complete:
            return False
        if attempt.properties.get("write.format.default", "parquet") != "parquet":
            return False
        if any(file.format != "parquet" for file in attempt.files.data) or attempt.files.has_equality_deletes:
            return False
        if pipeline.mode == "sync" and pipeline.lane == "auto":
            # A complete snapshot is compared with the whole table.
            stored = sum(file.records for file in attempt.files.data)
            if stored > 4 * pipeline.small_lane.max_rows:
                return False
        return pipeline.lane == "small" or batch.bytes <= pipeline.small_lane.max_bytes

    def _large(self, batch: Batch, attempt: Attempt) -> Change:
        pipeline = self.loading.pipeline
        rules = rules_of(pipeline, batch.columns)
        mark = DeleteMark(pipeline.delete_when, self._deleted_column(batch))
        return LargeBatch(
            engine=self.loading.engine,
            table=self.loading.table,
            rules=rules,
            columns=(attempt.uuid, attempt.schema_id),
            shared=LogRun(self.loading.name, self.loading.run, batch.slice),
            frame=incoming(batch.frame(), batch.columns, rules, mark),
            fields=batch.columns,
            ids=attempt.schema.ids,
            log=self.loading.log,
            quarantine=self.loading.quarantine,
            reached=self.loading.reached,
            memory=self._memory,
            guard=self._guard,
        )

    @property
    def _memory(self) -> Memory:
        engine, table = self.loading.engine, self.loading.table
        assert self.loading.memory is not None
        return Memory(
            lambda attempt: DeleteMemory.known(engine, table, attempt.properties),
            self.loading.memory,
            self.loading.pipeline.late,
        )

    def _guard(self, counts: RowCounts, live: int) -> None:
        """Raise Held when a complete snapshot would delete more than is allowed."""
        most = self.loading.pipeline.guard.max_delete
        if counts.missing > max(live * most, self.loading.approved):
            why = (
                f"The snapshot holds {counts.read:,} rows; at most {most:.0%} of the table may go at a time "
                "(guard: max_delete)."
            )
            raise Held(self.loading.name, str(self.loading.table), counts.missing, live, why)

    def _small(
        self, batch: Batch, attempt: Attempt, rows: pa.Table, deletes: pa.Array, origins: pa.Array | None
    ) -> Change:
        rules = rules_of(self.loading.pipeline, batch.columns)
        numbers = pa.array(range(len(rows)), pa.int64())
        keyless = self._keyless(rows, rules)
        rejected = None
        if keyless is not None:
            rejected = _rejected(rows, numbers, origins, keyless, rules)
            kept = pc.invert(keyless)
            rows, deletes, numbers = rows.filter(kept), deletes.filter(kept), numbers.filter(kept)
        opened = self.loading.quarantine
        return SmallBatch(
            rules=rules,
            columns=(attempt.uuid, attempt.schema_id),
            shared=LogRun(self.loading.name, self.loading.run, batch.slice),
            rows=rows,
            numbers=numbers,
            deletes=deletes,
            rejected=rejected,
            log=self.loading.log,
            quarantine=opened() if opened is not None and rejected is not None else None,
            connection=self.loading.connection,
            ids=attempt.schema.ids,
            reached=self.loading.reached,
            memory=self._memory,
            guard=self._guard,
            attempt=attempt,
        )

    def _rows(self, batch: Batch, attempt: Attempt) -> tuple[pa.Table, pa.Array, pa.Array | None]:
        """Return the fitted rows in the order of arrival, which of them are deletes, and their origins."""
        names = [column.name for column in batch.columns]
        wanted = pa.schema([attempt.schema.arrow.field(name).with_nullable(True) for name in names])
        pipeline = self.loading.pipeline
        if batch.arrow is not None and pipeline.delete_when is None:
            fitted = _as(batch.arrow, wanted)
            if fitted is not None:
                return fitted, self._marked(fitted, batch), None
        engine = self.loading.engine
        mark = DeleteMark(pipeline.delete_when, self._deleted_column(batch))
        frame = incoming(batch.frame(), batch.columns, rules_of(pipeline, batch.columns), mark)
        if not batch.bytes and pipeline.lane == "auto":
            # Nobody knows how much it is: more than fits is not brought here.
            frame = frame.limit(pipeline.small_lane.max_rows + 1)
        with (
            explained("cannot read the rows", engine.log, reads_source=True),
            watched(engine, batch.progress),
        ):
            found = to_arrow(frame)
        bad = found.filter(pc.is_valid(found.column(BAD)))
        if len(bad):
            reasons = bad.column(BAD)
            examples = sorted({pc.min(reasons).as_py(), pc.max(reasons).as_py()})
            raise BadRows(self.loading.name, len(bad), len(found), examples)
        found = found.sort_by([(name, "ascending") for name in ARRIVAL])
        rows = found.select(names).cast(wanted)
        return rows, found.column(DELETED).combine_chunks(), found.column(ORIGIN).combine_chunks()

    def _deleted_column(self, batch: Batch) -> str | None:
        """Return the column by which the source marks deletes, if it sends one."""
        column = find(batch.columns, self.loading.pipeline.deleted_column)
        if column is None or column.name.lower() not in (sent.lower() for sent in batch.sent):
            return None
        return column.name

    def _marked(self, rows: pa.Table, batch: Batch) -> pa.Array:
        column = self._deleted_column(batch)
        if column is None:
            return pa.repeat(pa.scalar(False), len(rows))
        return rows.column(column).cast(pa.bool_()).fill_null(False).combine_chunks()

    def _keyless(self, rows: pa.Table, rules: KeyRules) -> pa.Array | None:
        """Return which rows lack a part of their key; None when none does."""
        lacking = None
        for name in rules.key:
            column = rows.column(name)
            if column.null_count:
                here = pc.is_null(column)
                lacking = here if lacking is None else pc.or_(lacking, here)
        return lacking.combine_chunks() if lacking is not None else None


def _as(rows: pa.Table, wanted: pa.Schema) -> pa.Table | None:
    """Return rows as other types where nothing can be lost by that, else None."""
    columns = []
    given = {name.lower(): name for name in rows.column_names}
    for field in wanted:
        name = given.get(field.name.lower())
        if name is None:
            columns.append(pa.nulls(len(rows), field.type))
            continue
        column = rows.column(name)
        if column.type != field.type:
            if not _is_wider(column.type, field.type):
                return None
            column = column.cast(field.type)
        columns.append(column)
    return pa.table(columns, schema=wanted)


def _is_wider(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_integer(given):
        return bool(types.is_integer(wanted) and given.bit_width < wanted.bit_width)
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        return given.unit in ("s", "ms", "us") and (given.tz is None) == (wanted.tz is None)
    if types.is_large_string(given) or types.is_string_view(given):
        return bool(types.is_string(wanted))
    return bool(types.is_null(given) or (types.is_float32(given) and types.is_float64(wanted)))


def _rejected(
    rows: pa.Table, numbers: pa.Array, origins: pa.Array | None, which: pa.Array, rules: KeyRules
) -> pa.Table:
    bad = rows.filter(which)
    reasons = []
    for row in bad.select(list(rules.key)).to_pylist():
        missing = ", ".join(f'"{name}"' for name, value in row.items() if value is None)
        reasons.append(f"the key column {missing} has no value")
    payloads = [json.dumps(row, default=str, ensure_ascii=False) for row in bad.to_pylist()]
    return pa.table(
        {
            "row": numbers.filter(which),
            "origin": origins.filter(which) if origins is not None else pa.nulls(len(bad), pa.string()),
            "rules": pa.array([[NO_KEY]] * len(bad), pa.list_(pa.string())),
            "reason": pa.array(reasons, pa.string()),
            "payload": pa.array(payloads, pa.string()),
        }
    )
