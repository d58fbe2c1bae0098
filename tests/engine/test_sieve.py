"""A sieve lets good rows pass, and has the others when all are through."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.engine.session import Engine
from esker.engine.sieve import Sieve
from tests.folder import Folder

pytestmark = pytest.mark.spark

IS_BAD = "number % 10 = 3"


@pytest.fixture
def engine(folder: Folder) -> Engine:
    return folder.open().engine


@pytest.fixture(params=["compiled", "interpreted"])
def rows(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[DataFrame]:
    """Rows of all sorts of types, read in parts from memory that is used again for the next ones."""
    number = F.col("number")
    kinds = [
        number,
        F.concat(F.lit("text "), number).alias("text"),
        number.cast("decimal(30,2)").alias("decimal"),
        F.timestamp_seconds(number).alias("moment"),
        F.array(number.cast("string"), F.lit(None)).alias("list"),
        F.create_map(F.lit("key"), number.cast("string")).alias("map"),
        F.struct(number.cast("string").alias("inner"), F.lit(None).cast("string").alias("none")).alias("s"),
        number.cast("string").cast("binary").alias("bytes"),
    ]
    place = str(tmp_path / "rows")
    engine.spark.range(20_000).withColumnRenamed("id", "number").select(*kinds).write.parquet(place)
    # Where its code does not compile, Spark would go on without a word, and slowly.
    engine.spark.conf.set("spark.sql.codegen.fallback", "false")
    if request.param == "interpreted":
        # What Spark does where the code of a step is too large for Java.
        engine.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        engine.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield engine.spark.read.parquet(place)
    for name in ("fallback", "wholeStage", "factoryMode"):
        engine.spark.conf.unset(f"spark.sql.codegen.{name}")


def written(rows: DataFrame) -> list[int]:
    return sorted(row.number for row in rows.collect())


def test_rows_pass_or_stay(engine: Engine, rows: DataFrame) -> None:
    """Every row either passes or stays, as it is."""
    sieve = Sieve(engine)
    passed = written(
        sieve.through(rows, F.expr(IS_BAD), F.lit(True), 10_000, {"even": F.expr("number % 2 = 0")})
    )

    assert passed == [number for number in range(20_000) if number % 10 != 3]
    assert (sieve.left_out, sieve.kept, sieve.count("even")) == (2_000, 2_000, 10_000)
    kept = sieve.rows()
    assert kept.schema == rows.schema
    assert kept.orderBy("number").collect() == rows.where(IS_BAD).orderBy("number").collect()


def test_no_more_stay_than_wanted(engine: Engine, rows: DataFrame) -> None:
    """Of more bad rows than there is room for, and of those that are too long, only the number is known."""
    sieve = Sieve(engine)
    few = rows.coalesce(1)
    passed = written(sieve.through(few, F.expr(IS_BAD), F.expr("number % 20 = 3"), 100, {}))

    assert (len(passed), sieve.left_out, sieve.kept) == (18_000, 2_000, 50)
    assert {row.number % 20 for row in sieve.rows().collect()} == {3}


def test_nothing_stays(engine: Engine, rows: DataFrame) -> None:
    """Where every row is good, nothing is there to be read."""
    sieve = Sieve(engine)
    assert len(written(sieve.through(rows, F.expr("number < 0"), F.lit(True), 10, {}))) == 20_000
    assert (sieve.left_out, sieve.kept, sieve.rows().count()) == (0, 0, 0)


@pytest.mark.process
def test_tasks_that_are_repeated_count_twice(tmp_path: Path) -> None:
    """What tasks had sent to others is lost, as with an executor: Spark repeats them, and tells nobody.

    A count of all rows shows it. In a process of its own, as Spark gives its only executor up for lost.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.repeated_tasks", str(tmp_path / "project")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_plans_do_not_show_rows(engine: Engine, rows: DataFrame) -> None:
    """What stays may be personal, and Spark prints plans into logs and for its listeners."""
    sieve = Sieve(engine)
    through: Any = sieve.through(rows, F.expr(IS_BAD), F.lit(True), 10_000, {})
    through.collect()
    assert sieve.kept == 2_000
    told = through._jdf.queryExecution().toString()
    assert "text 13" not in told
    assert str(sieve.left_out) not in told
