"""A large batch whose executor dies between two jobs: started by a test.

python -m tests.load.lost_executor FOLDER

The rows come from a source without a fixed order: computed a second time, each has another number.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from esker.engine.jars import provide_jars
from esker.engine.java import find_java
from esker.errors import RowsLost
from esker.events import Event, Listener, Reached, Step
from tests.folder import SPARK
from tests.load.works import Works
from tests.servers.waiting import wait_until

_ROWS = 2_000
_JARS = ["iceberg", "sqlite"]


def shuffled(parts: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Give the rows of a task in another order each time."""
    found = list(parts)
    if not found:
        return
    whole = pd.concat(found)
    yield whole.iloc[random.SystemRandom().sample(range(len(whole)), len(whole))]


def rows(spark: SparkSession, version: int) -> Any:
    """Return rows: those with an even id have another title in each version. Some parts have none."""
    found = spark.range(_ROWS, numPartitions=4).selectExpr(
        "id", f"CASE WHEN id % 2 = 0 THEN 'title {version} of ' ELSE 'title of ' END || id AS title"
    )
    return found.unionByName(found.where("id < 0")).mapInPandas(shuffled, found.schema)


def kill_executors(context: Any) -> None:
    """Kill all executors, and wait until Spark has noticed; it starts others."""

    def known() -> set[str]:
        return set(context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split())

    before = known()
    children = context._jvm.java.lang.ProcessHandle.current().children().toList()
    executors = [each for each in children if "ExecutorBackend" in each.info().commandLine().orElse("")]
    assert executors
    for each in executors:
        os.kill(each.pid(), signal.SIGKILL)
    wait_until(lambda: len(before & known()) == 1, "the driver is left alone")


def at_located(context: SparkContext, times: int) -> Listener:
    """Kill the executors when stored versions have been found, so many times."""
    killed: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.LOCATED and len(killed) < times:
            killed.append(event)
            kill_executors(context)

    return listen


def main(place: Path) -> None:
    os.environ |= {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    place.mkdir()
    jars = ",".join(map(str, provide_jars(_JARS, {}, place / "jars.log")))
    options = SPARK["conf"]["spark.driver.extraJavaOptions"]
    conf = SparkConf().setMaster("local-cluster[2,1,1024]").setAppName("executors that die")
    conf.setAll(
        [
            ("spark.jars", jars),
            ("spark.esker.jars", ",".join(_JARS)),
            ("spark.driver.memory", "1g"),
            ("spark.executor.memory", "512m"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.ui.enabled", "false"),
            ("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
            ("spark.driver.extraJavaOptions", options),
            ("spark.executor.extraJavaOptions", options),
        ]
    )
    with SparkContext(conf=conf) as context:
        works = Works(place / "project", lane="large")
        spark = works.project.engine.spark
        works.load(rows(spark, 1))
        result = works.load(rows(spark, 2), at_located(context, 1))
        assert (result.rows.updated, result.rows.unchanged) == (_ROWS // 2, _ROWS // 2), result
        check(works, 2)
        try:
            works.load(rows(spark, 3), at_located(context, 3))
        except RowsLost as error:
            print(error.code)
        else:
            raise AssertionError("the rows were there although no executor had them")
        check(works, 2)
        assert works.load(rows(spark, 3)).rows.updated == _ROWS // 2
        check(works, 3)


def check(works: Works, version: int) -> None:
    """Check that each key has its row of a version, in the table and in the change log."""
    expected = {n: f"title of {n}" if n % 2 else f"title {version} of {n}" for n in range(_ROWS)}
    assert {number: row["title"] for number, row in works.rows().items()} == expected
    assert {number: row["title"] for number, row in works.replayed().items()} == expected


if __name__ == "__main__":
    main(Path(sys.argv[1]))
