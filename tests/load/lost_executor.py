"""Batches whose executors die between two jobs, or within one: started by a test.

python -m tests.load.lost_executor FOLDER

The rows come from a source without a fixed order: computed a second time, each has another number.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from esker.engine.jars import provide_jars
from esker.engine.java import find_java
from esker.errors import RowsLost
from esker.events import Listener, Step
from esker.load.lanes import large
from tests.folder import SPARK, Folder
from tests.load.works import Works, at
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


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def kill_the_other(executor: int) -> None:
    """Kill the executor that is not this one."""
    driver = parent(executor)
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):  # no process, or one that has ended
            is_executor = b"ExecutorBackend" in (each / "cmdline").read_bytes()
            if is_executor and int(each.name) != executor and parent(int(each.name)) == driver:
                os.kill(int(each.name), signal.SIGKILL)


def deadly(done: Path) -> Callable[[Iterable[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Return a source whose last part kills the other executor once, when the first parts are done there."""

    def give(parts: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in shuffled(parts):
            first = int(rows["number"].min())
            if first >= _ROWS * 3 // 4 and not (done / "killed").exists():
                while len(list(done.iterdir())) < 2:
                    time.sleep(0.1)
                time.sleep(3)  # until Spark knows it, too
                (done / "killed").touch()
                # A daemon starts the processes of Python, and the executor started that.
                kill_the_other(parent(os.getppid()))
            yield rows
            if first < _ROWS // 2:
                (done / str(first)).touch()

    return give


def addresses(context: Any) -> set[str]:
    """Return where Spark has its driver and its executors."""
    return set(context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split())


def kill_executors(context: Any) -> None:
    """Kill all executors, and wait until Spark has noticed; it starts others."""
    wait_until(lambda: len(addresses(context)) == 3, "both executors")
    before = addresses(context)
    children = context._jvm.java.lang.ProcessHandle.current().children().toList()
    executors = [each for each in children if "ExecutorBackend" in each.info().commandLine().orElse("")]
    assert executors
    for each in executors:
        os.kill(each.pid(), signal.SIGKILL)
    wait_until(lambda: len(before & addresses(context)) == 1, "the driver is left alone")


def at_located(context: SparkContext) -> Listener:
    """Kill the executors the first time that stored versions have been found."""
    return at(Step.LOCATED, lambda: kill_executors(context))


@contextmanager
def cluster(place: Path) -> Iterator[SparkContext]:
    """Start Spark with two executors in processes of their own."""
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
        yield context


def main(place: Path) -> None:
    with cluster(place) as context:
        works = Works(place / "project", lane="large")
        spark = works.project.engine.spark
        works.load(rows(spark, 1))
        result = works.load(rows(spark, 2), at_located(context))
        assert (result.rows.updated, result.rows.unchanged) == (_ROWS // 2, _ROWS // 2), result
        check(works, 2)
        large._READS = 1
        try:
            works.load(rows(spark, 3), at_located(context))
        except RowsLost as error:
            print(error.code)
        else:
            raise AssertionError("the rows were there although no executor had them")
        check(works, 2)
        assert works.load(rows(spark, 3)).rows.updated == _ROWS // 2
        check(works, 3)
        bad_rows_come_once(place / "append", context)


def bad_rows_come_once(place: Path, context: Any) -> None:
    """Tasks that are repeated because what they had sent is lost leave no bad row twice in the quarantine."""
    done = place / "done"
    done.mkdir(parents=True)
    columns = {"id": {"type": "bigint", "required": True}, "number": "bigint"}
    pipeline = Folder.files_pipeline(
        columns=columns, bad_rows="quarantine", partition_by=["bucket(2, number)"]
    )
    project = Folder(place / "project", pipelines={"sales": pipeline}).open()
    frame = project.engine.spark.range(_ROWS, numPartitions=4).selectExpr(
        "if(id % 10 = 3, null, id) AS id", "id AS number"
    )
    wait_until(lambda: len(addresses(context)) == 3, "both executors")
    result = project.load("sales", frame.mapInPandas(deadly(done), frame.schema))
    assert (done / "killed").exists()
    bad = [number for number in range(_ROWS) if number % 10 == 3]
    assert (result.rows.inserted, result.rows.quarantined) == (_ROWS - len(bad), len(bad)), result
    payloads = project.table("shop.sales__quarantine").select("payload").collect()
    assert sorted(int(json.loads(row[0])["number"]) for row in payloads) == bad
    numbers = [row[0] for row in project.table("shop.sales").select("number").collect()]
    assert sorted(numbers) == [number for number in range(_ROWS) if number % 10 != 3]


def check(works: Works, version: int) -> None:
    """Check that each key has its row of a version, in the table and in the change log."""
    expected = {n: f"title of {n}" if n % 2 else f"title {version} of {n}" for n in range(_ROWS)}
    assert {number: row["title"] for number, row in works.rows().items()} == expected
    assert {number: row["title"] for number, row in works.replayed().items()} == expected


if __name__ == "__main__":
    main(Path(sys.argv[1]))
