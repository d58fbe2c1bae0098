"""The first load leaves an archive of classes behind; whatever becomes of it, Java starts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from esker.engine.class_archive import archive_of, make_at_end, use_or_make
from esker.engine.gateway import stop
from esker.engine.jars import provide_jars
from esker.engine.java import Java, find_java
from esker.engine.session import _launched
from tests.command import CHILD_SPARK, esker
from tests.engine.jar_cache import prepare_cache
from tests.folder import Folder

JAVA = Java(Path("/opt/java"), 17, "PATH", "17.0.1+2 made by somebody")
TOLD = "sales: reading 1 file\nsales: published changeset 1\n"
RECORDED = "-XX:+RecordDynamicDumpInfo -Xlog:cds*=off"


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Java goes on for seconds after the command that started it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def processes_of(folder: Path) -> list[int]:
    """Return the processes that were started with a path below a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{folder}/".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended
    return found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with the jars of the embedded catalog, and no archive."""
    folder = prepare_cache(tmp_path / "cache", "iceberg", "sqlite")
    monkeypatch.setenv("ESKER_CACHE", str(folder))
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    yield folder
    wait_for(lambda: not processes_of(tmp_path))


def shop(path: Path, options: str = "") -> Folder:
    """Return a small project whose Java has further options."""
    own = f"{CHILD_SPARK['conf']['spark.driver.extraJavaOptions']} {options}".strip()
    conf = CHILD_SPARK["conf"] | {"spark.driver.extraJavaOptions": own}
    folder = Folder(path, spark=CHILD_SPARK | {"conf": conf})
    folder.write_csv("landing/a.csv", ["id", "title"], [(1, "one"), (2, "two")])
    return folder


def spark_logs(folder: Folder) -> str:
    return "".join(log.read_text() for log in (folder.path / ".esker" / "logs").glob("*.log"))


@pytest.mark.process
def test_the_first_load_makes_an_archive_and_the_next_start_uses_it(cache: Path, tmp_path: Path) -> None:
    """Nobody waits for it, nobody hears of it, and each class of Spark comes from it."""
    folder = shop(tmp_path / "project")
    answer = esker(folder.path, "run")
    assert answer.status == 0, answer.stderr
    assert answer.stderr == TOLD
    wait_for(lambda: bool([*cache.glob("classes/*.jsa")]))
    wait_for(lambda: not processes_of(tmp_path))
    [archive] = cache.glob("classes/*")
    assert [*cache.glob("classes/.*")] == []

    classes = tmp_path / "classes.log"
    again = shop(tmp_path / "another", f"-Xlog:class+load:file={classes}")
    answer = esker(again.path, "run")
    assert (answer.status, answer.stderr) == (0, TOLD)
    wait_for(lambda: not processes_of(tmp_path))
    told = [line for line in classes.read_text().splitlines() if " org.apache.spark.SparkContext " in line]
    assert [line.partition("source: ")[2] for line in told] == ["shared objects file (top)"]
    assert [*cache.glob("classes/*")] == [archive], "it is not made a second time"
    assert "cds" not in spark_logs(folder) + spark_logs(again)


@pytest.mark.process
def test_java_that_is_killed_while_it_writes_leaves_no_archive(cache: Path, tmp_path: Path) -> None:
    """Nor does the next run try the same: perhaps the machine has too little memory for it."""
    folder = shop(tmp_path / "project")
    assert esker(folder.path, "run").status == 0
    wait_for(lambda: bool([*cache.glob("classes/*.tried")]))
    for process in processes_of(tmp_path):
        os.kill(process, signal.SIGKILL)
    wait_for(lambda: not processes_of(tmp_path))
    assert [*cache.glob("classes/*.jsa")] == []

    folder.write_csv("landing/b.csv", ["id", "title"], [(3, "three")])
    assert esker(folder.path, "run").status == 0
    wait_for(lambda: not processes_of(tmp_path))
    [tried] = cache.glob("classes/*")
    assert tried.read_text() == "not made to its end"


@pytest.mark.process
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100_000, os.urandom(100_000)], ids=["empty", "zero", "random"]
)
def test_java_passes_over_an_archive_that_is_none(content: bytes, cache: Path, tmp_path: Path) -> None:
    """It starts, and writes no word into the log."""
    jars = provide_jars(["iceberg", "sqlite"], {}, tmp_path / "log")
    java = find_java()
    archive = archive_of(java, jars, "")
    archive.parent.mkdir()
    archive.write_bytes(content)
    option = use_or_make(archive, "")
    assert str(archive) in option
    conf = {
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": "-Dspark.none=1",
    }
    gateway = _launched(conf, option, tmp_path / "spark.log", java)
    try:
        runtime = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        assert option.partition(" ")[0] in [*runtime.getInputArguments()], "it was offered"
    finally:
        stop(gateway)
    assert "cds" not in (tmp_path / "spark.log").read_text()


@pytest.mark.process
def test_a_java_that_does_not_know_the_options_starts_without_them(tmp_path: Path) -> None:
    conf = {"spark.driver.extraJavaOptions": "-Dspark.none=1"}
    gateway = _launched(conf, "-XX:+NoSuchOption", tmp_path / "spark.log", find_java())
    try:
        assert gateway.jvm.java.lang.System.getProperty("spark.none") == "1"
    finally:
        stop(gateway)


def test_its_name_says_all_that_it_depends_on(cache: Path, tmp_path: Path) -> None:
    """Java would pass over an archive of another Java, Spark or jar; one of that name would keep it slow."""
    jars = [*(cache / "jars").iterdir()]
    own = tmp_path / "own.jar"
    own.write_bytes(b"1")
    archive = archive_of(JAVA, [*jars, own], "-XX:+UseSerialGC")
    assert archive.parent == cache / "classes"
    same = archive_of(JAVA, [*jars, own], "-Xmx3g -Dname=value -XX:+UseParallelGC -XX:TieredStopAtLevel=1")
    assert same == archive
    others = [
        archive_of(Java(JAVA.home, 17, "PATH", "17.0.2+1 made by somebody"), [*jars, own], ""),
        archive_of(Java(Path("/opt/java2"), 17, "PATH", JAVA.build), [*jars, own], ""),
        archive_of(JAVA, [own, *jars], ""),
        archive_of(JAVA, jars, ""),
        archive_of(JAVA, [*jars, own], "-XX:-UseCompressedOops"),
        archive_of(JAVA, [*jars, own], "-javaagent:/opt/agent.jar"),
    ]
    own.write_bytes(b"12")
    others.append(archive_of(JAVA, [*jars, own], ""))
    assert len({archive, *others}) == len(others) + 1


def test_the_environment_has_its_part_in_the_name(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options that Java takes from variables, and folders that Spark's launcher puts before the jars."""
    names = {archive_of(JAVA, [], "")}
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:-UseCompressedOops")
    names.add(archive_of(JAVA, [], ""))
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    names.add(archive_of(JAVA, [], ""))
    assert len(names) == 3


def test_java_gets_no_option_where_the_user_configured_an_archive(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_of(JAVA, [], "")
    assert use_or_make(archive, "") == RECORDED
    for own in (
        "-XX:SharedArchiveFile=/opt/mine.jsa",
        "-Xshare:off",
        "-XX:ArchiveClassesAtExit=/opt/mine.jsa",
    ):
        assert use_or_make(archive, own) == ""
        with monkeypatch.context() as patched:
            patched.setenv("JAVA_TOOL_OPTIONS", own)
            assert use_or_make(archive, "") == ""


def test_nothing_is_tried_where_an_archive_cannot_be_made(cache: Path, tmp_path: Path) -> None:
    """What was tried an hour ago, a name with a colon, a place that is no folder."""
    archive = archive_of(JAVA, [], "")
    archive.parent.mkdir()
    tried = archive.with_suffix(".tried")
    tried.touch()
    assert use_or_make(archive, "") == ""
    day_before = time.time() - 2 * 86_400
    os.utime(tried, (day_before, day_before))
    assert use_or_make(archive, "") == RECORDED
    assert use_or_make(tmp_path / "a:b" / "c.jsa", "") == ""
    (tmp_path / "file").touch()
    use_or_make(tmp_path / "file" / "c.jsa", "")
    make_at_end(None)  # raises nothing, and asks no Java


def test_a_path_with_blanks_stays_one_option(cache: Path, tmp_path: Path) -> None:
    archive = tmp_path / "with 'blanks'" / "c.jsa"
    archive.parent.mkdir()
    archive.touch()
    assert use_or_make(archive, "").startswith(f"-XX:SharedArchiveFile='{tmp_path}/with '\"'\"'blanks")
