"""Kinds of source that other packages offer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from esker.errors import InvalidProject
from esker.project import load_project
from tests.project.test_load import write

KIND = '''
from typing import Literal

from esker.project.sources import PluggedInSource


class Tides(PluggedInSource):
    """Heights of the sea."""

    type: Literal["tides"] = "tides"
    harbour: str

    @property
    def reads(self):
        return self.harbour
'''
PROJECT = """\
project: sea
pipelines:
  heights:
    source: {type: tides, harbour: Brest}
    table: sea.heights
"""


def offer(path: Path, module: str) -> None:
    """Make a package that offers a kind of source."""
    (path / "tides.py").write_text(module)
    info = path / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[esker.sources]\ntides = tides:Tides\n")


def check(path: Path) -> tuple[int, str]:
    """Check a project in a process of its own: kinds are found when Esker starts."""
    (path / "project").mkdir()
    (path / "project/esker.yml").write_text(PROJECT)
    done = subprocess.run(
        [sys.executable, "-c", "from esker.cli.main import main; main()", "check"],
        cwd=path / "project",
        env={"PYTHONPATH": str(path), "PATH": "/usr/bin:/bin", "HOME": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_kind_of_another_package(tmp_path: Path) -> None:
    offer(tmp_path, KIND)
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
