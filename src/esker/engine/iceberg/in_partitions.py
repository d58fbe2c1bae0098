"""The partitions that staged files belong to, and which other files and rows lie in them.

A table whose partitioning changed has files of other specs. Their own partitions say nothing about those of
this spec, so these are computed from the rows, by Iceberg's functions for Spark.
"""

from __future__ import annotations

import json
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType

from esker.engine.compat import from_arrow
from esker.engine.iceberg.content_file import content_file
from esker.engine.iceberg.java import iceberg
from esker.engine.iceberg.manifests import FileEntry, Partition
from esker.engine.iceberg.stage import StagedFiles, partition_values
from esker.engine.iceberg.table import java_table
from esker.engine.session import Engine


class StagedPartitions:
    """The partitions of staged files, under the spec that they were written with. There is at least one."""

    def __init__(self, engine: Engine, staged: StagedFiles) -> None:
        self._engine, self._staged = engine, staged
        self._jvm: Any = engine.spark.sparkContext._jvm
        self._table = java_table(engine, staged.table)
        self.spec_id = int(staged.handles[0].specId())
        self._spec = self._table.specs().get(self.spec_id)
        self._known: dict[Partition, bool] = {}

    @cached_property
    def _values(self) -> frozenset[tuple[str | None, ...]]:
        return frozenset(self._values_of(file) for file in self._staged.handles)

    def hold(self, file: FileEntry) -> bool:
        """Tell whether a file of the same spec belongs to one of them."""
        partition = file.spec_id, file.partition
        if partition not in self._known:
            values = tuple(value for _, value in file.partition)
            like = content_file(
                self._jvm, self._spec, location=file.path, size=1, records=1, partition=values
            )
            self._known[partition] = self._values_of(like) in self._values
        return self._known[partition]

    def mark(self, rows: DataFrame, name: str) -> DataFrame:
        """Return rows of the table with a column that is true for those that belong to one of them."""
        values = partition_values(self._table, self._staged.table, self._spec)
        if not values:
            return rows.withColumn(name, F.lit(True))
        mine = [f"{name}_{place}" for place in values]
        theirs = [f"{column}_staged" for column in mine]
        keyed = rows.withColumns(dict(zip(mine, values.values(), strict=True)))
        kinds = [keyed.schema[column].dataType for column in mine]
        texts = zip(*({tuple(found[place] for place in values) for found in self._values}), strict=True)
        table = pa.table([pa.array(column, pa.string()) for column in texts], names=theirs)
        staged = from_arrow(self._engine.spark, table).select(
            *(_parsed(column, kind).alias(column) for column, kind in zip(theirs, kinds, strict=True)),
            F.lit(True).alias(name),
        )
        # Null is a partition like any other.
        pairs = zip(mine, theirs, strict=True)
        same = reduce(Expression.__and__, (F.col(one).eqNullSafe(F.col(other)) for one, other in pairs))
        found = keyed.join(F.broadcast(staged), same, "left").drop(*mine, *theirs)
        return found.withColumn(name, F.coalesce(F.col(name), F.lit(False)))

    def _values_of(self, file: Any) -> tuple[str | None, ...]:
        """Return the values of a file's partition as texts, as Iceberg writes them."""
        document = json.loads(iceberg(self._jvm, "ContentFileParser").toJson(file, self._spec))
        return tuple(_text(value) for value in document["partition"])


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _parsed(column: str, kind: DataType) -> Expression:
    """Return a text of Iceberg's as the value that it stands for."""
    return F.unhex(column) if isinstance(kind, BinaryType) else F.col(column).cast(kind)
