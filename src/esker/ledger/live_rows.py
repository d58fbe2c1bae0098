"""Which rows of a pipeline's table are there for those who read it: not what is deleted, nor of the past."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.project.pipelines import Pipeline
from esker.project.types import quoted


def live(pipeline: Pipeline, rows: DataFrame) -> DataFrame:
    """Return the rows of a table that are neither marked as deleted nor versions of the past."""
    if pipeline.mode == "scd2":
        return rows.where(F.col(quoted(pipeline.versions.is_current)))
    return without_deleted(pipeline, rows)


def without_deleted(pipeline: Pipeline, rows: DataFrame) -> DataFrame:
    """Return the rows of a table that are not marked as deleted."""
    if pipeline.keeps_deleted and pipeline.deleted_column in rows.columns:
        return rows.where(~F.coalesce(F.col(quoted(pipeline.deleted_column)), F.lit(False)))
    return rows
