"""A run that reads little starts a Java that compiles little; any other starts as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.engine.driver_options import brief_options
from esker.pipeline.brief import MOST, is_brief
from esker.project import load_project
from tests.command import esker
from tests.folder import Folder

Make = Callable[..., Folder]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a project whose one pipeline reads a small file."""
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)

    def made(path: str = "landing/*", **keys: Any) -> Folder:
        folder = Folder(tmp_path / "project", pipelines={"sales": Folder.files_pipeline(path, **keys)})
        folder.write("landing/a.csv", "id\n1\n")
        return folder

    return made


def brief(folder: Folder, *names: str) -> bool:
    return is_brief(load_project(folder.path), names)


def test_small_files_are_brief(make: Make) -> None:
    """So are rules that look at one row, and a folder that is not there: the run says so."""
    assert brief(make())
    assert brief(make("missing/*.csv"))


def test_what_may_take_long_is_not(make: Make) -> None:
    """Many bytes, packed or in formats that pack, or many files; read already or not."""
    folder = make()
    file = folder.path / "landing" / "large.csv"
    for name, size, expected in (
        ("large.csv", MOST - 100, True),
        ("large.csv", MOST, False),
        ("large.csv.gz", MOST // 10 - 100, True),
        ("large.csv.gz", MOST // 10, False),
        ("large.parquet", MOST // 10, False),
    ):
        file = folder.path / "landing" / name
        with file.open("wb") as stream:
            stream.truncate(size)
        assert brief(folder) is expected, (name, size)
        file.unlink()
    for number in range(1000):
        (folder.path / f"landing/{number}.csv").touch()
    assert not brief(folder)


def test_all_pipelines_of_a_run_count(make: Make) -> None:
    """Only those that are named, or all of them."""
    folder = make()
    query = {"source": {"type": "query", "sql": "SELECT 1 AS id"}, "table": "shop.others", "mode": "replace"}
    folder.document["pipelines"]["others"] = query
    folder.save()
    assert brief(folder, "sales")
    assert not brief(folder, "sales", "others")
    assert not brief(folder)


def test_whatever_reads_elsewhere_is_not(make: Make) -> None:
    """Another machine, or a lane for large batches."""
    assert not brief(make("s3://bucket/orders/*.csv"))
    assert not brief(make(mode="upsert", key=["id"], lane="large"))


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        ("-Dname=value -Xss4m", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        ("-XX:+UseG1GC", "-XX:TieredStopAtLevel=1"),
        ("-XX:+UnlockExperimentalVMOptions -XX:+UseZGC", "-XX:TieredStopAtLevel=1"),
        ("-XX:TieredStopAtLevel=4", "-XX:+UseSerialGC"),
        ("-XX:-TieredCompilation", "-XX:+UseSerialGC"),
        ("-Xint -XX:+UseParallelGC", ""),
    ],
)
def test_a_users_own_options_win(own: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project file or in the environment; Java does not start with two collectors."""
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    assert brief_options(own) == expected
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", own)
    assert brief_options("") == expected


@pytest.mark.process
def test_only_the_command_that_reads_little_is_brief(make: Make) -> None:
    """Java itself says with which options it was started."""
    folder = make()
    conf = {"spark.driver.extraJavaOptions": "-XX:+PrintCommandLineFlags"}
    folder.document["spark"] = {"master": "local[2]", "conf": conf}
    folder.save()
    assert "-XX:TieredStopAtLevel=1" in options_of_a_run(folder)
    folder.write("landing/b.csv", "id\n2\n" + "\n" * MOST)
    assert "-XX:TieredStopAtLevel" not in options_of_a_run(folder)


def options_of_a_run(folder: Folder) -> str:
    """Run, and return the line of options that Java has written into its log."""
    logs = folder.path / ".esker" / "logs"
    before = {*logs.glob("*.log")}
    answer = esker(folder.path, "run", "--json")
    assert answer.status == 0, answer.stderr
    assert answer.document["pipelines"][0]["rows"]["inserted"] == 1
    [log] = {*logs.glob("*.log")} - before
    return next(line for line in log.read_text().splitlines() if "PrintCommandLineFlags" in line)
