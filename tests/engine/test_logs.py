"""Spark's messages go to a file; what the user sees was written by Esker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from esker.engine.logs import new_log
from esker.errors import LogNotWritable, SparkFailed
from tests.command import esker
from tests.folder import SPARK, Folder

_OURS = re.compile(
    r"""[a-z]+:\ .+                 # a pipeline's name and what it does
      | error\ ESK-[A-Z]+-\d+\ .+   # an error, its reason, its remedy
      | \ \ why:\ .+
      | \ \ do:\ \ .+
      | \ {7}\S.*""",
    re.VERBOSE,
)
_NOISE = re.compile(r"\b(WARN|INFO|ERROR|WARNING|SLF4J|log4j)\b|^\s+at |Exception in|Caused by|Traceback")


@pytest.mark.process
def test_the_terminal_shows_only_what_esker_says(tmp_path: Path) -> None:
    """A run with a good and a bad pipeline prints a table and messages; Spark's warnings are in the log."""
    pipelines = {
        "good": Folder.files_pipeline(table="shop.good"),
        "bad": Folder.files_pipeline("torn/*.parquet", "parquet", "shop.bad"),
    }
    folder = Folder(tmp_path / "project", pipelines=pipelines)
    folder.write_csv("landing/a.csv", ["id", "name"], [[1, "amber"], [2, "basalt"]])
    folder.write("torn/a.parquet", "PAR1 this is no parquet file PAR1")
    answer = esker(folder.path, "run")
    assert answer.status != 0
    for line in answer.stderr.splitlines():
        assert _OURS.fullmatch(line), f"not Esker's: {line}"
        assert not _NOISE.search(line), line
    assert [line for line in answer.stdout.splitlines() if "good" in line and "succeeded" in line]
    assert [line for line in answer.stdout.splitlines() if "bad" in line and "failed" in line]
    assert not _NOISE.search(answer.stdout)
    [log] = (folder.path / ".esker" / "logs").glob("spark-*.log")
    assert "WARN" in log.read_text()


@pytest.mark.process
@pytest.mark.parametrize(
    ("spark", "message", "in_log"),
    [
        # Java itself refuses to start.
        (
            {"conf": {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:+UseParallelGC"}},
            "Java did not start",
            "garbage collectors",
        ),
        # Java starts, and Spark in it does not.
        (
            {"driver_memory": "100m"},
            "Spark did not start",
            "",
        ),
    ],
)
def test_an_error_names_a_log_that_exists(
    spark: dict[str, object], message: str, in_log: str, tmp_path: Path
) -> None:
    """Whoever follows the remedy finds the file, and the cause in it."""
    folder = Folder(tmp_path / "project", spark={**SPARK, **spark})
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    answer = esker(folder.path, "run", "--json")
    assert answer.status == 1, answer.stdout + answer.stderr
    assert answer.error["code"] == SparkFailed.code
    assert answer.error["message"] == message
    assert answer.stderr == ""
    assert in_log in answer.error["reason"]
    named = re.search(r"Read the end of (\S+);", answer.error["remedy"])
    assert named
    assert in_log in Path(named[1]).read_text()


def test_old_logs_are_removed(tmp_path: Path) -> None:
    """A project that runs every minute keeps the newest twenty logs."""
    for minute in range(30):
        (tmp_path / f"spark-20260101-00{minute:02}00-1.log").touch()
        (tmp_path / f"spark-20260101-00{minute:02}00-1.properties").touch()
    fresh = new_log(tmp_path)
    fresh.touch()
    left = sorted(tmp_path.glob("spark-*.log"))
    assert len(left) == 20
    assert fresh in left
    assert left[0].name == "spark-20260101-001100-1.log"
    assert len(list(tmp_path.glob("*.properties"))) == 19


def test_a_log_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A project folder that cannot be written to is named, before Java starts."""
    (tmp_path / ".esker").write_text("a file where a folder is needed")
    with pytest.raises(LogNotWritable) as caught:
        new_log(tmp_path / ".esker" / "logs")
    assert str(tmp_path / ".esker") in caught.value.message
    assert caught.value.remedy
