"""Silver's source: days of bronze that got something, each payment once and without anybody's name."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import esker

PERSONAL = ("card_holder", "email", "card_number")
_BRONZE, _SILVER = "lake.bronze.payments", "lake.silver.payments"


@esker.source
def payments(spark: SparkSession) -> Iterator[DataFrame]:
    """All payments of the days that have something in files which silver has not seen."""
    bronze = spark.table(_BRONZE).withColumn("day", F.to_date("paid_at"))
    newest = 0
    if spark.catalog.tableExists(_SILVER):
        newest = spark.table(_SILVER).agg(F.max("file_no")).collect()[0][0] or 0
    days = [row.day for row in bronze.where(F.col("file_no") > newest).select("day").distinct().collect()]
    if days:
        yield cleaned(bronze.where(F.col("day").isin(days)))


def cleaned(bronze: DataFrame) -> DataFrame:
    """Return each payment once, as it first came, without what is personal."""
    # Copies in one file are the same: whichever is taken, the rows are the same each time they are read.
    first = F.row_number().over(Window.partitionBy("transaction_id").orderBy("file_no"))
    once = bronze.withColumn("copy", first).where("copy = 1")
    return (
        once.withColumn("card", keyed_hash(F.col("card_number")))
        .withColumnRenamed("amount", "amount_sent")
        .withColumn("amount", F.expr("try_cast(amount_sent AS decimal(12,2))"))
        .drop("copy", *PERSONAL)
    )


def keyed_hash(value: Column) -> Column:
    """Return the HMAC-SHA256 of a text. A plain hash of a card number is found by trying all numbers."""
    key = os.environ.get("PAYMENTS_KEY", "for this example only").encode().ljust(64, b"\0")
    inner, outer = (F.lit(bytes(byte ^ pad for byte in key)) for pad in (0x36, 0x5C))
    digest = F.unhex(F.sha2(F.concat(inner, value.cast("binary")), 256))
    return F.sha2(F.concat(outer, digest), 256)
