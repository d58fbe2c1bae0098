"""Write rows as data files of a table without committing them.

Iceberg's own Spark writer writes them, on the executors, with the table's format, partitioning and
statistics; only the commit is left out. The door is the catalog that Iceberg's compaction uses for the
same purpose (`docs/decisions/0003-staging-without-a-commit.md`). A stop leaves files that nothing
refers to, which orphan removal finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.cleanup import cleaning_up
from esker.engine.compat import rebalanced
from esker.engine.compat.staging import staging_name, staging_options
from esker.engine.failures import JvmFailure, explained
from esker.engine.iceberg.java import each, static_method
from esker.engine.iceberg.metadata import metadata_of
from esker.engine.iceberg.table import TableId, java_table
from esker.engine.iceberg.table_state import opener
from esker.engine.session import STAGING_CATALOG, Engine
from esker.engine.sql import identifier
from esker.errors import EskerError, PartitionColumnDropped, SchemaMoved
from esker.project.layout import SortField
from esker.project.types import Column, columns_from_json, ddl, quoted

_TABLE_BUCKET = "--table-s3"
"""How the buckets behind a table bucket of Amazon S3 Tables end."""
LINEAGE = ("_row_id", "_last_updated_sequence_number")
"""Columns that Iceberg's compaction also carries, in tables of format version 3."""


@dataclass(frozen=True)
class StagedFiles:
    """Data files that were written for a table and belong to no snapshot yet."""

    table: TableId
    table_uuid: str
    schema_id: int
    rows: int
    bytes: int
    files: int
    handles: tuple[Any, ...] = field(repr=False, compare=False)

    @property
    def places(self) -> list[tuple[str, int]]:
        """Location and size of each file."""
        return [(file.location(), file.fileSizeInBytes()) for file in self.handles]


def stage(
    engine: Engine, table: TableId, frame: DataFrame, group: str, sort: Sequence[SortField] = ()
) -> StagedFiles:
    """Write a frame's rows as files of the table. The frame has the table's columns, by name.

    `group` names this staging and is unique to it. Rows are sorted within files as the table says, or by
    `sort` where it says nothing. Raises SchemaMoved when the table has other columns
    by now, PartitionColumnDropped, DiskFull, StoreNotWritable or SparkFailed.
    """
    jvm: Any = engine.spark.sparkContext._jvm
    cache = static_method(jvm, "org.apache.iceberg.spark.SparkTableCache", "get")()
    coordinator = jvm.org.apache.iceberg.spark.FileRewriteCoordinator.get()
    with explained(f'cannot write files of table "{table}"', engine.log):
        target = java_table(engine, table)
        metadata = metadata_of(opener(jvm).describe(target))
        columns = metadata.columns
        if _shape(columns) != _shape(columns_from_json(frame.schema.jsonValue())):
            raise SchemaMoved(str(table))
        names = [quoted(column.name) for column in columns]
        order = [_ordered(f) for f in metadata.sort_fields or sort]
        rows = _distributed(frame.select(*names), target, table, order)
        if metadata.format_version >= 3:
            # The rewrite door of a v3 table also takes row ids; null means "assign them at commit".
            rows = rows.select("*", *(F.lit(None).cast("bigint").alias(name) for name in LINEAGE))
        cache.add(group, target)

        def clear() -> None:
            cache.remove(group)
            coordinator.clearRewrite(target, group)

        with cleaning_up(clear):
            writer = rows.writeTo(identifier(STAGING_CATALOG, staging_name(group)))
            writer = writer.options(**staging_options(group)).option("check-nullability", "false")
            # A table with a sort order would otherwise be shuffled by it: the content stays where it is.
            writer.option("use-table-distribution-and-ordering", str(not order).lower()).append()
            files = tuple(each(coordinator.fetchNewFiles(target, group)))
        return StagedFiles(
            table=table,
            table_uuid=str(target.uuid()),
            schema_id=target.schema().schemaId(),
            rows=sum(file.recordCount() for file in files),
            bytes=sum(file.fileSizeInBytes() for file in files),
            files=len(files),
            handles=files,
        )


def discard(engine: Engine, staged: StagedFiles) -> None:
    """Delete staged files, where that can be done. Only for a batch that was never handed to a commit.

    Called on the way to a failure or a hold, which people must hear of: raises nothing. No reader sees what
    is left, and orphan removal finds it.
    """
    with suppress(EskerError, *JvmFailure):
        table = java_table(engine, staged.table)
        if not can_delete(engine, staged.table.catalog, str(table.location())):
            return
        for file in staged.handles:
            table.io().deleteFile(file.location())


def can_delete(engine: Engine, catalog: str, location: str) -> bool:
    """Tell whether a store takes deletes: Amazon's table buckets refuse them, and clean up themselves."""
    bucket = urlsplit(location).netloc
    return engine.bindings[catalog].takes_deletes and not bucket.endswith(_TABLE_BUCKET)


def _shape(columns: tuple[Column, ...]) -> set[tuple[str, str]]:
    return {(column.name.lower(), ddl(column.type)) for column in columns}


def _ordered(field: SortField) -> Expression:
    column = F.col(quoted(field.column))
    return column.desc() if field.is_descending else column.asc()


def partition_values(table: Any, name: TableId, spec: Any) -> dict[int, Expression]:
    """Return the expressions for the partition of a row under a spec of the table, by the place of the field.

    Fields that are void, or whose column is gone, have no value in any row and are left out.
    """
    values = {}
    for place, spec_field in enumerate(each(spec.fields())):
        path = table.schema().findColumnName(spec_field.sourceId())
        transform = spec_field.transform().toString()
        if transform == "void" or path is None:
            continue
        column = identifier(path)
        if transform == "identity":
            values[place] = F.expr(column)
            continue
        function, _, argument = transform.rstrip("]").partition("[")
        function = {"year": "years", "month": "months", "day": "days", "hour": "hours"}.get(
            function, function
        )
        arguments = f"{argument}, {column}" if argument else column
        values[place] = F.expr(f"{identifier(name.catalog, 'system', function)}({arguments})")
    return values


def _distributed(frame: DataFrame, table: Any, name: TableId, order: list[Expression]) -> DataFrame:
    """Bring the rows of a partition together: few files each, and one open at a time, with sorted rows."""
    for spec_field in each(table.spec().fields()):
        if table.schema().findColumnName(spec_field.sourceId()) is None:
            raise PartitionColumnDropped(str(name), spec_field.name())
    keys = list(partition_values(table, name, table.spec()).values())
    if not keys:
        return frame.sortWithinPartitions(*order) if order else frame
    # Rebalance, not repartition: a partition that holds most of the batch is still written by many tasks.
    names = [f"_esker_key{index}" for index in range(len(keys))]
    keyed = frame.select("*", *(key.alias(name) for key, name in zip(keys, names, strict=True)))
    return rebalanced(keyed, names).sortWithinPartitions(*names, *order).drop(*names)
