"""Kinds of target that other packages offer."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.command import CHILD_SPARK
from tests.folder import Folder

KIND = '''
from typing import Literal

from esker.project.target_kinds import PluggedInTarget


class Pigeons(PluggedInTarget):
    """Birds that carry messages."""

    type: Literal["pigeons"] = "pigeons"
    loft: str
'''
PROJECT = """\
project: sea
pipelines:
  heights:
    source: {type: files, path: "*.csv", format: csv}
    table: sea.heights
    mode: upsert
    key: [id]
consumers:
  harbour: {from: heights, to: {type: pigeons, loft: Brest}}
"""


PAGE = Path(__file__).parents[2] / "docs/how-to/deliver.md"
COMMANDS = """
import json, sys
from esker.cli.main import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["esker", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""


def check(path: Path, module: str) -> tuple[int, str]:
    """Check a project in a process of its own, with a package that offers a kind of target."""
    (path / "pigeons.py").write_text(module)
    info = path / "pigeons-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[esker.targets]\npigeons = pigeons:Pigeons\n")
    (path / "project").mkdir()
    (path / "project/esker.yml").write_text(PROJECT)
    program = (
        f"import sys; sys.path[:0] = {[str(path), *sys.path]!r}; from esker.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check"],
        cwd=path / "project",
        env={"PATH": "/usr/bin:/bin", "HOME": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_package_offers_a_kind_of_target(tmp_path: Path) -> None:
    """It is declared like those that Esker brings, and mistakes in it are told by line."""
    status, output = check(tmp_path, KIND)
    assert status == 0, output


def test_a_kind_that_cannot_be_imported_is_told_where_it_is_used(tmp_path: Path) -> None:
    """Other projects and commands go on."""
    status, output = check(tmp_path, "import nowhere\n")
    assert status == 2
    assert 'package "pigeons" offers this kind of target' in output


@pytest.mark.spark
@pytest.mark.process
def test_the_target_of_the_page_is_delivered_to(tmp_path: Path) -> None:
    """The file that is shown there is all there is to a target: for this process and for Spark."""
    page = PAGE.read_text()
    [module] = re.findall(r"^```python\n(\"\"\"Keep the newest.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [point] = re.findall(r'^\[project.entry-points."(.+)"\]\nsqlite = "(.+)"$', page, re.MULTILINE)
    (tmp_path / "esker_sqlite.py").write_text(module)
    info = tmp_path / "esker_sqlite-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: esker-sqlite\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{point[0]}]\nsqlite = {point[1]}\n")
    near = {"from": "works", "to": {"type": "sqlite", "path": "near.db", "longest": 40}}
    far = {"from": "works", "to": {"type": "sqlite", "path": "far.db"}, "batch": {"spark": 0}}
    pipeline = Folder.files_pipeline(table="shop.works", mode="upsert", key=["id"])
    folder = Folder(
        tmp_path / "project",
        pipelines={"works": pipeline},
        consumers={"near": near, "far": far},
        spark=CHILD_SPARK,
    )
    folder.write_csv("landing/a.csv", ["id", "title"], [(1, "a"), (2, "long" * 20), (3, "c")])
    words = [["check"], ["run"], ["deliver"]]
    places = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(words)],
        cwd=folder.path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "near: 1 rows failed, and are dead letters now" in done.stdout

    def rows(name: str) -> dict[str, str]:
        with closing(sqlite3.connect(folder.path / name)) as connection:
            return {
                id_: json.loads(body)["title"]
                for id_, body in connection.execute("select id, body from rows")
            }

    assert rows("near.db") == {"1": "a", "3": "c"}
    assert rows("far.db") == {"1": "a", "2": "long" * 20, "3": "c"}
