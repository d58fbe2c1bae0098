"""Rows that pass a sieve twice, as Spark has lost what its tasks had sent: started by a test.

python -m tests.engine.repeated_tasks FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from esker.engine.sieve import Sieve
from tests.command import CHILD_SPARK
from tests.folder import Folder


def main(place: Path) -> None:
    engine = Folder(place, spark=CHILD_SPARK).open().engine
    rows = engine.spark.range(20_000).withColumnRenamed("id", "number")
    counts = {"all": F.lit(True), "even": F.expr("number % 2 = 0")}
    sieve = Sieve(engine)
    passed: Any = sieve.through(rows, F.expr("number % 10 = 3"), F.lit(True), 10_000, counts).repartition(2)
    tasks = passed._jdf.queryExecution().toRdd()
    assert (tasks.count(), sieve.count("all"), sieve.count("even")) == (18_000, 20_000, 10_000)
    context: Any = engine.spark.sparkContext
    disk = context._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    sent = [Path(path) for path in disk.getAllFiles().mkString("\n").splitlines() if path.endswith(".data")]
    max(sent, key=lambda path: path.stat().st_mtime_ns).unlink()
    assert tasks.count() == 18_000
    assert sieve.count("all") > 20_000
    assert sieve.count("even") > 10_000
    assert sieve.rows().dropDuplicates(["number"]).count() == 2_000


if __name__ == "__main__":
    main(Path(sys.argv[1]))
