"""Kinds of source that other packages offer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from esker.errors import InvalidProject
from esker.project import load_project
from tests.project.test_load import write
from tests.sources.tides import offer, page_of_tides

PROJECT = """\
project: sea
pipelines:
  heights:
    source: {type: tides, folder: heights}
    table: sea.heights
"""


WATCHED = """
import sys
from esker.cli.main import main
try:
    main()
finally:
    assert not {"pyspark", "py4j", "pyarrow"} & set(sys.modules)
"""


def check(path: Path) -> tuple[int, str]:
    """Check a project in a process of its own: kinds are found when Esker starts."""
    (path / "project").mkdir()
    (path / "project/esker.yml").write_text(PROJECT)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "check"],
        cwd=path / "project",
        env={"PYTHONPATH": os.pathsep.join([str(path), *sys.path]), "PATH": "", "HOME": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_kind_of_another_package(tmp_path: Path) -> None:
    """It is declared like those that Esker brings; no Spark is loaded for that."""
    offer(tmp_path, page_of_tides())
    assert check(tmp_path) == (0, "sea: 1 pipeline, no problems\n")


def test_a_package_that_cannot_be_imported(tmp_path: Path) -> None:
    """Whoever does not use it is not disturbed; whoever does is told why."""
    offer(tmp_path, "import nothing_of_that_name")
    status, told = check(tmp_path)
    assert status == 2
    assert 'package "tides" offers this kind of source, and it cannot be used: ModuleNotFoundError' in told


def test_windows_and_modes(tmp_path: Path) -> None:
    """What would lose or repeat rows is refused, with its place."""
    source = '{type: oai_pmh, url: "http://127.0.0.1/oai", window: {every: 15m, overlap: 5m}}'
    for keys, message in (
        ("", "source.window.overlap: mode append would add rows twice"),
        ("    mode: upsert\n    key: [id]\n", "with windows, a mode with a key needs order_by:"),
        ("    mode: replace\n", "mode replace takes a batch for all there is"),
    ):
        text = f"project: sea\npipelines:\n  a:\n    source: {source}\n    table: a.b\n{keys}"
        with pytest.raises(InvalidProject, match=message):
            load_project(write(tmp_path, text))
    broken = source.replace("15m", "500ms")
    with pytest.raises(InvalidProject, match="windows are whole seconds long"):
        load_project(write(tmp_path, f"project: s\npipelines:\n  a: {{source: {broken}, table: a.b}}\n"))
