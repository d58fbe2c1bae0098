"""Benchmarks that miss what is wanted fail, and the others run all the same."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import bench_upsert_s3
from benchmarks.machine import commit, measured_with
from benchmarks.wanted import Wanted

ROOT = Path(__file__).parents[1]


def test_figures_and_what_is_wanted_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = Wanted()
    assert wanted.at_most("memory", 1.3, 1.3) == "wanted at most 1.3"
    assert wanted.at_least("speed", 0.9, 0.9) == "wanted at least 0.9"
    wanted.end()
    wanted.at_most("memory", 1.31, 1.3)
    wanted.at_least("speed", math.nan, 0.9)
    with pytest.raises(SystemExit) as ended:
        wanted.end()
    assert ended.value.code == 1
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "missed: memory: 1.31, wanted at most 1.3",
        "missed: speed: nan, wanted at least 0.9",
    ]
    # Of the one that met all, and of the one that did not.
    assert told.out.splitlines() == [measured_with()] * 2


def test_the_last_line_names_commit_and_machine(tmp_path: Path) -> None:
    """A figure is worth nothing without what it was measured with; changed files are not the commit."""
    line = r"measured at commit ([0-9a-f]{7,}(-dirty)?|unknown): \d+ cores, .+, \d+ GiB of memory, "
    assert re.fullmatch(line + r"(Java \d+|no Java)", measured_with())
    assert commit(tmp_path) == "unknown"

    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=e", "-c", "user.email=e@example.org")
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init")
    (tmp_path / "a.py").write_text("one = 1\n")
    git("add", ".")
    git("commit", "-m", "first")
    head = git("rev-parse", "--short", "HEAD")
    assert commit(tmp_path) == head
    (tmp_path / "a.py").write_text("one = 2\n")
    assert commit(tmp_path) == f"{head}-dirty"


def test_all_are_run(tmp_path: Path) -> None:
    """Those that miss, or fail, are named at the end."""
    head = "from benchmarks.wanted import Wanted\nwanted = Wanted()\n"
    for name, last in (("a", "wanted.at_least('speed', 0.1, 0.9)"), ("b", "1 / 0"), ("c", "print('fast')")):
        (tmp_path / f"bench_{name}.py").write_text(f"{head}{last}\nwanted.end()\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    first, *others = done.stdout.splitlines()
    # The one that misses and the one that is fast come to their end, the one that fails does not.
    assert (first.partition(":")[0], others[0]) == ("measured at commit unknown", "fast")
    assert others[1:] == [first]
    assert done.stderr.endswith("failed, or missed what is wanted: bench_a.py, bench_b.py\n")


@pytest.mark.parametrize("path", sorted(ROOT.glob("benchmarks/bench_*.py")), ids=lambda path: path.stem)
def test_every_benchmark_can_fail(path: Path) -> None:
    text = path.read_text()
    assert ".end()" in text
    assert "(wanted" not in text, "what is wanted is told by benchmarks/wanted.py, which takes note"


def test_a_benchmark_that_lacks_a_part_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was measured, so nothing met what is wanted."""
    monkeypatch.setattr(bench_upsert_s3, "program", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench_upsert_s3.py"])
    with pytest.raises(SystemExit) as ended:
        bench_upsert_s3.main()
    assert str(ended.value.code).startswith("upserts on S3: not measured, SeaweedFS is missing")
