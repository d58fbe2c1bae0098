"""Modes whose rows have a key: a batch is compared with what is stored, and only what differs is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import DataFrame

from esker.contracts.evolution import find
from esker.engine.iceberg.commit import Attempt
from esker.errors import NoMoment
from esker.load.batch import Batch, Loading
from esker.load.collected import collect
from esker.load.comparison import Comparison
from esker.load.diff import KeyRules, VersionColumns
from esker.load.incoming import DeleteMark, incoming
from esker.load.lanes.large import LargeBatch
from esker.load.lanes.large_edits import LargeEdits
from esker.load.lanes.small import SmallBatch
from esker.load.lanes.small_edits import SmallEdits
from esker.load.publish import Change
from esker.project.modes import WHOLE
from esker.project.pipelines import Pipeline
from esker.project.types import Column
from esker.sources import Span

_IN_PROCESS = 8
"""So many times as much as of other batches fits, where the rows lie in this process already."""


_OF_HEAP = 8
"""No more than this part of Java's heap is brought here through it."""


class _Most(NamedTuple):
    """What fits into the small lane."""

    max_rows: float
    max_bytes: float


def rules_of(
    pipeline: Pipeline,
    columns: tuple[Column, ...],
    span: Span | None = None,
    moment: datetime | None = None,
    *,
    is_replay: bool = False,
) -> KeyRules:
    """Return how a pipeline compares rows, with columns named as the table names them.

    Of rows that are loaded again, from a `span` of the source or the quarantine (`is_replay`), nothing that
    is stored is older, nor equally old unless the span says so. `moment` is when the versions of a batch
    began, where its rows do not tell it.
    """
    is_part = is_replay or (span is not None and not span.is_full)

    def named(name: str) -> str:
        column = find(columns, name)
        return column.name if column is not None else name

    return KeyRules(
        key=tuple(named(name) for name in pipeline.key),
        order_by=named(pipeline.order_by) if pipeline.order_by is not None else None,
        deleted_column=named(pipeline.deleted_column) if pipeline.keeps_deleted else None,
        ignored=tuple(pipeline.ignore_columns),
        touches=pipeline.touch,
        only_inserts=pipeline.mode == "insert_only" or (is_part and pipeline.order_by is None),
        is_complete=not is_part and (pipeline.mode in WHOLE or span is not None),
        is_late=is_part,
        stored_wins=is_part and not (span is not None and span.replaces_equal),
        swaps=pipeline.mode == "delete_insert",
        versions=_versions(pipeline, moment, named) if pipeline.mode == "scd2" else None,
    )


def _versions(pipeline: Pipeline, moment: datetime | None, named: Callable[[str], str]) -> VersionColumns:
    valid_from, valid_to, is_current = (named(name) for name in pipeline.versions.names)
    return VersionColumns(
        valid_from, valid_to, is_current, moment=moment if pipeline.order_by is None else None
    )


@dataclass(frozen=True)
class Keyed:
    """Loads batches by key. Small ones in this process, others with Spark."""

    loading: Loading

    def stage(self, batch: Batch) -> Change:
        loading, pipeline = self.loading, self.loading.pipeline
        if pipeline.mode == "scd2" and pipeline.order_by is None and batch.until is None:
            raise NoMoment(loading.name)
        attempt = Attempt(loading.engine, loading.table)
        given = self._given(batch, attempt)
        mark = self._mark(batch)
        most = self._most(batch, mark)
        if self._may_be_small(batch, attempt, given.rules, most):
            found = collect(loading, batch, given, mark, attempt.schema, most.max_rows)
            if found.read <= most.max_rows:
                parts = (found.rows, found.numbers, found.deletes, found.until, found.rejected)
                kind = SmallBatch if given.rules.is_unique else SmallEdits
                small = kind(
                    given, *parts, loading.connection, attempt, protected=found.protected, tally=found.tally
                )
                if small.can_read(attempt):
                    return small

        def frame() -> DataFrame:
            return incoming(batch.frame(), batch.columns, given.rules, mark, loading.rules)

        large = LargeBatch if given.rules.is_unique else LargeEdits
        size = batch.weight.bytes
        fits = size is not None and size <= pipeline.small_lane.max_bytes
        rejects = loading.rejects(batch)
        return large(loading.engine, loading.table, given, frame, fits, loading.rules, rejects)

    def _given(self, batch: Batch, attempt: Attempt) -> Comparison:
        loading = self.loading
        assert loading.quarantine is not None
        assert loading.memory is not None
        replay = loading.resolved is not None or batch.is_repair
        rules = rules_of(loading.pipeline, batch.columns, loading.span, batch.until, is_replay=replay)
        return Comparison(
            rules=rules.of_command() if batch.command is not None else rules,
            base=batch.command.base if batch.command is not None else None,
            table=(attempt.uuid, attempt.schema_id),
            fields=batch.columns,
            ids=attempt.schema.ids,
            pipeline=loading.name,
            run=loading.run,
            slice=batch.slice,
            log=loading.log,
            quarantine=loading.quarantine,
            memory=loading.memory,
            guards=batch.guards,
            resolved=loading.resolved,
            reached=loading.reached,
        )

    def _most(self, batch: Batch, mark: DeleteMark) -> _Most:
        """Return how much of a batch this process takes: more, when it has the rows already."""
        small = self.loading.pipeline.small_lane
        if self.loading.pipeline.lane == "small":
            return _Most(math.inf, math.inf)
        if batch.arrow is not None and mark.when is None:
            return _Most(_IN_PROCESS * small.max_rows, _IN_PROCESS * small.max_bytes)
        # On their way here rows stand in Java's heap, more than once.
        return _Most(small.max_rows, min(small.max_bytes, self.loading.engine.heap // _OF_HEAP))

    def _may_be_small(self, batch: Batch, attempt: Attempt, rules: KeyRules, most: _Most) -> bool:
        """Tell whether the batch fits into this process, and the process can read the table's files."""
        pipeline = self.loading.pipeline
        if pipeline.lane == "large" or not attempt.schema.is_complete:
            return False
        if attempt.properties.get("write.format.default", "parquet") != "parquet":
            return False
        if attempt.may_have_equality_deletes and attempt.files.has_equality_deletes:
            return False
        if rules.is_complete and pipeline.lane == "auto":
            # A complete snapshot is compared with the whole table.
            stored = sum(file.records for file in attempt.files.data)
            if stored > 4 * pipeline.small_lane.max_rows:
                return False
        rows, size = batch.weight.rows or 0, batch.weight.bytes or 0
        return rows <= most.max_rows and size <= most.max_bytes

    def _mark(self, batch: Batch) -> DeleteMark:
        if batch.command is not None:
            return DeleteMark(column=self._deleted_column(batch), beside=batch.command.mark)
        return DeleteMark(self.loading.pipeline.delete_when, self._deleted_column(batch))

    def _deleted_column(self, batch: Batch) -> str | None:
        """Return the column by which the source marks deletes, if it sends one."""
        column = find(batch.columns, self.loading.pipeline.deleted_column)
        if column is None or column.name.lower() not in (sent.lower() for sent in batch.sent):
            return None
        return column.name
