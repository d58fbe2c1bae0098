"""Which manifests, files and groups of rows a filter cannot match: they are not opened.

Partition values and bounds decide, by PyIceberg's own evaluators. What they cannot tell is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cached_property
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.manifest import PartitionFieldSummary
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

from esker.engine.iceberg.manifests import FileEntry
from esker.reading.filter import RowFilter

_UNTELLING = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    NotImplementedError,
    struct.error,
)
"""What an evaluator raises at what it does not know: a widened type, a partition by a dropped column."""
_KNOWN_GROUPS = (IntegerType, LongType, DateType, TimestampType, TimestamptzType, StringType)
"""Types whose bounds in a Parquet footer all writers agree on."""


@dataclass(frozen=True)
class _Manifest:
    partitions: list[PartitionFieldSummary]


@dataclass(frozen=True)
class _Bounds:
    """What is known of a file, or of a group of its rows, as PyIceberg asks for it."""

    record_count: int
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    value_counts: None = None
    null_value_counts: None = None
    nan_value_counts: None = None


@dataclass(frozen=True)
class Pruning:
    """What of a table must be read for a filter."""

    metadata: TableMetadata
    filter: RowFilter

    def may_hold(self, manifest: Mapping[str, Any]) -> bool:
        """Tell of a manifest, by its record in the list, whether a wanted row may be in its files.

        Manifests of deletes are always needed: a delete says nothing of where its rows lie.
        """
        if manifest.get("content"):
            return True
        summaries = [
            PartitionFieldSummary(
                each["contains_null"], each.get("contains_nan"), each["lower_bound"], each["upper_bound"]
            )
            for each in manifest.get("partitions") or ()
        ]
        evaluator = self._manifests.get(manifest["partition_spec_id"])
        return evaluator is None or _asked(evaluator, _Manifest(summaries))

    def may_match(self, file: FileEntry) -> bool:
        """Tell of a data file, by its entry, whether a wanted row may be in it."""
        evaluator = self._partitions.get(file.spec_id)
        values = Record(*(_stored(value) for _, value in file.partition))
        if evaluator is not None and file.partition and not _asked(evaluator, values):
            return False
        return _asked(self._bounds.eval, _Bounds(file.records, file.lower, file.upper))

    def may_be_in(self, group: pq.RowGroupMetaData, columns: Mapping[str, int]) -> bool:
        """Tell of a group of rows of a Parquet file, whose columns have these field ids."""
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for number in range(group.num_columns):
            column = group.column(number)
            own = columns.get(column.path_in_schema)
            kind = self._types.get(own) if own is not None else None
            known = column.statistics if kind is not None else None
            if own is None or kind is None or known is None or not known.has_min_max:
                continue
            try:
                lower[own], upper[own] = to_bytes(kind, known.min), to_bytes(kind, known.max)
            except _UNTELLING:
                lower.pop(own, None)
        return _asked(self._bounds.eval, _Bounds(group.num_rows, lower, upper))

    @cached_property
    def _bounds(self) -> Any:
        return _InclusiveMetricsEvaluator(self.filter.schema, self.filter.expression)

    @cached_property
    def _types(self) -> dict[int, PrimitiveType]:
        return {
            each.field_id: each.field_type
            for each in self.filter.schema.fields
            if isinstance(each.field_type, _KNOWN_GROUPS)
        }

    @cached_property
    def _manifests(self) -> dict[int, Callable[[Any], bool]]:
        return self._by_spec(
            lambda spec, wanted: manifest_evaluator(spec, self.filter.schema, wanted, case_sensitive=True)
        )

    @cached_property
    def _partitions(self) -> dict[int, Callable[[Any], bool]]:
        def evaluator(spec: Any, wanted: Any) -> Callable[[Any], bool]:
            kinds = Schema(*spec.partition_type(self.filter.schema).fields)
            return expression_evaluator(kinds, wanted, case_sensitive=True)

        return self._by_spec(evaluator)

    def _by_spec(self, make: Callable[[Any, Any], Callable[[Any], bool]]) -> dict[int, Callable[[Any], bool]]:
        found: dict[int, Callable[[Any], bool]] = {}
        for number, spec in self.metadata.specs().items():
            try:
                wanted = inclusive_projection(self.filter.schema, spec)(self.filter.expression)
                found[number] = make(spec, wanted)
            except _UNTELLING:
                continue
        return found


def _asked(evaluator: Callable[[Any], bool], about: Any) -> bool:
    try:
        return evaluator(about)
    except _UNTELLING:
        return True


def _stored(value: Any) -> Any:
    """Return a partition's value, as Avro gives it, in the form that evaluators compare."""
    match value:
        case datetime():
            return datetime_to_micros(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_micros(value)
        case UUID():
            return value.bytes
        case float():
            return float(value)  # a PartitionNumber equals no plain number when it is looked for in a set
    return value
