"""What a table's files say about it without reading their rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from esker.engine.failures import JvmFailure, causes, explained, first_line
from esker.engine.iceberg.file_statistics import ColumnStatistics, Files
from esker.engine.iceberg.java import each
from esker.engine.iceberg.table import Table, TableId, java_table
from esker.engine.session import Engine
from esker.errors import InvalidFilter

__all__ = ["ColumnStatistics", "Files", "column_statistics", "planned_files"]


def planned_files(engine: Engine, table: TableId, where: str | None) -> Files:
    """Return what a scan with a filter would read, or raise InvalidFilter."""
    scan: Any
    with explained(f'cannot plan a scan of table "{table}"', engine.log):
        scan = java_table(engine, table).newScan()
    if where:
        try:
            scan = scan.filter(_expression(engine, table, where))
        except JvmFailure as error:
            raise InvalidFilter(where, first_line(causes(error)[0].message) or str(error)) from error
    files = rows = size = 0
    concerned: list[str] = []
    contents: set[str] = set()
    with explained(f'cannot plan a scan of table "{table}"', engine.log):
        tasks = scan.planFiles()
        for task in each(tasks):
            file, deletes = task.file(), task.deletes()
            files, rows, size = files + 1, rows + file.recordCount(), size + file.fileSizeInBytes()
            if not deletes.isEmpty():
                concerned.append(file.location())
                contents |= {str(delete.content()) for delete in each(deletes)}
        tasks.close()
        gone = _deleted_by_position(engine, table) if "POSITION_DELETES" in contents else {}
    deleted = sum(gone.get(path, 0) for path in concerned)
    return Files(files, rows - deleted, size, deleted, is_exact="EQUALITY_DELETES" not in contents)


def _deleted_by_position(engine: Engine, table: TableId) -> dict[str, int]:
    """Return how many rows of each data file are deleted by their position. Reads the files of deletes."""
    deletes = engine.spark.table(f"{table.sql}.`position_deletes`").select("file_path", "pos").distinct()
    return {row["file_path"]: row["count"] for row in deletes.groupBy("file_path").count().collect()}


def column_statistics(engine: Engine, table: Table) -> list[ColumnStatistics]:
    """Return each plain column's statistics, from the metadata of the current files."""
    with explained(f'cannot read the metadata of table "{table.id}"', engine.log):
        files = engine.spark.table(f"{table.id.sql}.`data_files`")
        metrics = files.schema["readable_metrics"].dataType
        assert isinstance(metrics, StructType)
        names = [field.name for field in metrics.fields if isinstance(field.dataType, StructType)]
        if not names:
            return []
        missing = _nulls_where_missing(engine, table.id, names)
        wanted = []
        for index, name in enumerate(names):
            quoted = "readable_metrics.`" + name.replace("`", "``") + "`."
            nulls = _nulls(quoted, missing.get(name))
            wanted += [
                F.sum(quoted + "value_count").alias(f"values{index}"),
                F.when(F.count(nulls) == F.count("*"), F.sum(nulls)).alias(f"nulls{index}"),
                F.min(quoted + "lower_bound").cast("string").alias(f"lowest{index}"),
                F.max(quoted + "upper_bound").cast("string").alias(f"highest{index}"),
                F.sum(quoted + "column_size").alias(f"bytes{index}"),
            ]
        row = files.agg(*wanted).first()
        assert row is not None
        return [
            ColumnStatistics(
                column=name,
                values=row[f"values{index}"],
                nulls=row[f"nulls{index}"],
                lowest=row[f"lowest{index}"],
                highest=row[f"highest{index}"],
                bytes=row[f"bytes{index}"],
            )
            for index, name in enumerate(names)
        ]


def _nulls(quoted: str, where_missing: Column | None) -> Column:
    """Return a file's number of rows without a value in a column; null when the file does not tell."""
    if where_missing is None:
        return F.lit(None).cast("bigint")
    counted = F.col(quoted + "value_count")
    # ORC does not count below a struct that is null itself: those rows lack the value, too.
    present = F.col("record_count") - counted + F.col(quoted + "null_value_count")
    # Avro files hold no statistics at all.
    knows = F.coalesce(F.size("value_counts") > 0, F.lit(False)) & F.col(quoted + "column_size").isNull()
    return F.when(counted.isNotNull(), present).when(knows, where_missing)


def _nulls_where_missing(engine: Engine, table: TableId, names: list[str]) -> dict[str, Column]:
    """Return how many nulls a file holds that knows nothing of a column.

    Such a file was written before the column was added: all its rows have the column's initial default,
    mostly null. A column is left out if files may lack its statistics for other reasons, or count
    elements of a list instead of rows.
    """
    jvm: Any = engine.spark.sparkContext._jvm
    found = java_table(engine, table)
    schema = found.schema()
    parents = jvm.org.apache.iceberg.types.TypeUtil.indexParents(schema.asStruct())
    kept = jvm.org.apache.iceberg.MetricsConfig.forTable(found)
    missing: dict[str, Column] = {}
    for name in names:
        field = schema.findField(name)
        above = parents.get(field.fieldId())
        while above is not None and schema.findType(above).isStructType():
            above = parents.get(above)
        if above is None and kept.columnMode(name).toString() != "none":
            missing[name] = F.col("record_count") if field.initialDefault() is None else F.lit(0)
    return missing


def _expression(engine: Engine, table: TableId, where: str) -> Any:
    spark: Any = engine.spark
    jvm = spark.sparkContext._jvm
    converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(spark._jsparkSession, table.sql, where)
    try:
        return converter.convertToIcebergExpression(resolved)
    except JvmFailure:
        # A condition that statistics cannot answer, such as one with a function: no file is left out.
        return jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
