"""What a publish did, told by the table: the changes between its snapshot and the one before it.

They are the rows that the comparison of the batch gave the change log, in every mode with a key.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from esker.ledger.change_log import HASH_AFTER, HASH_BEFORE, OP, ORDER, ROW
from esker.project.pipelines import Pipeline
from esker.project.reserved import HASH_COLUMN
from esker.project.types import quoted

PLACE = ("_file", "_pos")
"""Columns beside a snapshot's own: where its rows lie."""


def changes_between(
    then: DataFrame, now: DataFrame, pipeline: Pipeline, remembered: DataFrame | None
) -> DataFrame:
    """Return the changes between two snapshots, which come with PLACE, as the log keeps them.

    `remembered` are deletes that no row tells of. The places of the rows in their batch are not in the
    table: they are numbered anew, by key.
    """
    came = now.join(then.select(*PLACE), list(PLACE), "left_anti")
    went = then.join(now.select(*PLACE), list(PLACE), "left_anti")
    match pipeline.mode:
        case "delete_insert":
            rows = _of_many_rows(came, went)
        case "scd2":
            rows = _of_versions(then, now, came, went, pipeline, remembered)
        case _:
            rows = _of_one_row(now, came, went, pipeline)
    place = F.row_number().over(Window.orderBy(*_keys(pipeline))) - 1
    return rows.withColumn(ROW, place.cast("bigint")).drop(*PLACE)


def _of_one_row(now: DataFrame, came: DataFrame, went: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Return the changes of a table with one row of each key."""
    keys = _keys(pipeline)
    # Of several rows of one key, somebody else's, the same one counts as in the comparison of a batch.
    newest = [_order(pipeline).desc_nulls_last(), F.col("_file").desc(), F.col("_pos").desc()]
    went = _first(went, keys, [_deleted(pipeline), *newest])
    stored = went.select(
        *keys, F.col(HASH_COLUMN).alias(HASH_BEFORE), _deleted(pipeline).alias("_esker_was_deleted")
    )
    is_new = F.col("_esker_was_deleted").isNull()
    other = F.coalesce(F.col(HASH_BEFORE) != F.col(HASH_COLUMN), F.lit(True))
    op = F.when(_deleted(pipeline), "delete").when(is_new, "insert")
    op = op.when(F.col("_esker_was_deleted"), "undelete").when(other, "update")
    arrived = came.join(stored, list(pipeline.key), "left").withColumn(OP, op)
    arrived = arrived.where(F.col(OP).isNotNull())
    is_gone = F.col(OP) == "delete"
    arrived = arrived.withColumn(HASH_AFTER, F.when(~is_gone, F.col(HASH_COLUMN)))
    # A surplus row went, and its key is still there: that is no change.
    gone = went.join(now.select(*keys), list(pipeline.key), "left_anti").where(~_deleted(pipeline))
    gone = gone.withColumn(OP, F.lit("delete")).withColumn(HASH_BEFORE, F.col(HASH_COLUMN))
    return arrived.unionByName(gone, allowMissingColumns=True).withColumn(ORDER, _order(pipeline))


def _of_many_rows(came: DataFrame, went: DataFrame) -> DataFrame:
    """Return the changes of a table in which rows of a key come and go."""
    came = came.withColumn(OP, F.lit("insert")).withColumn(HASH_AFTER, F.col(HASH_COLUMN))
    went = went.withColumn(OP, F.lit("delete")).withColumn(HASH_BEFORE, F.col(HASH_COLUMN))
    return came.unionByName(went, allowMissingColumns=True)


def _of_versions(
    then: DataFrame,
    now: DataFrame,
    came: DataFrame,
    went: DataFrame,
    pipeline: Pipeline,
    remembered: DataFrame | None,
) -> DataFrame:
    """Return the versions that opened, and the deletes that ended one."""
    keys = _keys(pipeline)
    begin, end = (F.col(quoted(name)) for name in pipeline.versions.names[:2])
    # Where the next version begins there was no delete.
    begins = then.select(*keys, begin.alias("_esker_end"))
    ends = then.select(*keys, end.alias("_esker_end"))
    ends = ends.join(begins, [*pipeline.key, "_esker_end"], "left_anti")
    if remembered is not None and pipeline.order_by is not None:
        ends = ends.unionByName(remembered.select(*keys, F.col(ORDER).alias("_esker_end")))
    ends = ends.where(F.col("_esker_end").isNotNull()).distinct()

    in_order = Window.partitionBy(*keys).orderBy(begin.asc_nulls_first())
    hash_ = F.col(HASH_COLUMN)
    line = now.join(came.select(*keys).distinct(), list(pipeline.key), "left_semi").select(
        "*",
        F.lag(hash_).over(in_order).alias("_esker_previous"),
        F.lag(end).over(in_order).alias("_esker_previous_end"),
        F.lead(begin).over(in_order).alias("_esker_next"),
    )
    # Of several versions of one moment, somebody else's, the same one counts as in the comparison.
    copies = [end.isNotNull(), F.col("_file").desc(), F.col("_pos").desc()]
    replaced = _first(went, [*keys, quoted(pipeline.versions.names[0])], copies)
    replaced = replaced.select(*keys, begin.alias("_esker_begin"), hash_.alias("_esker_replaced"))
    line = line.join(came.select(*PLACE), list(PLACE), "left_semi").withColumn("_esker_begin", begin)
    same = [F.col(f"l.{name}") == F.col(f"r.{name}") for name in keys]
    same.append(F.col("l._esker_begin").eqNullSafe(F.col("r._esker_begin")))
    line = line.alias("l").join(replaced.alias("r"), same, "left").select("l.*", "r._esker_replaced")
    is_replaced = F.col("_esker_replaced").isNotNull()
    opened = line.where(~is_replaced | (F.col("_esker_replaced") != hash_))
    # A remembered delete before the first version makes its coming a coming back.
    first_end = ends.groupBy(*keys).agg(F.min("_esker_end").alias("_esker_first_end"))
    opened = opened.join(first_end, list(pipeline.key), "left")
    is_first = F.col("_esker_previous").isNull()
    is_back = F.when(is_first, F.coalesce(F.col("_esker_first_end") < begin, F.lit(False)))
    is_back = is_back.otherwise(F.col("_esker_previous_end") < begin)
    op = F.when(is_replaced, "update").when(is_back, "undelete").when(is_first, "insert")
    before = F.when(is_replaced, F.col("_esker_replaced")).when(~is_back, F.col("_esker_previous"))
    opened = opened.withColumn(OP, op.otherwise("update")).withColumn(HASH_BEFORE, before)
    opened = opened.withColumn(HASH_AFTER, hash_).withColumn(ORDER, begin)

    follows = F.col("_esker_next").isNotNull()
    ended = line.where(end.isNotNull() & (~follows | (F.col("_esker_next") > end)))
    # An end that was known before is none that this batch brought.
    ended = ended.withColumn("_esker_end", end).join(ends, [*pipeline.key, "_esker_end"], "left_anti")
    ended = ended.withColumn(OP, F.when(follows, "update").otherwise("delete"))
    ended = ended.withColumn(HASH_BEFORE, hash_).withColumn(HASH_AFTER, F.when(follows, hash_))
    return opened.unionByName(ended.withColumn(ORDER, end), allowMissingColumns=True)


def _first(rows: DataFrame, keys: list[str], order: list[Expression]) -> DataFrame:
    """Return the first row of each key."""
    number = F.row_number().over(Window.partitionBy(*keys).orderBy(*order))
    return rows.withColumn("_esker_version", number).where("_esker_version = 1").drop("_esker_version")


def _keys(pipeline: Pipeline) -> list[str]:
    return [quoted(name) for name in pipeline.key]


def _deleted(pipeline: Pipeline) -> Expression:
    if not pipeline.keeps_deleted:
        return F.lit(False)
    return F.coalesce(F.col(quoted(pipeline.deleted_column)), F.lit(False))


def _order(pipeline: Pipeline) -> Expression:
    return F.lit(None) if pipeline.order_by is None else F.col(quoted(pipeline.order_by))
