"""A kind of source of another package does what every kind must do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT
from tests.sources.tides import offer, page_of_tides


@pytest.mark.process
def test_the_kind_on_the_page(tmp_path: Path) -> None:
    """The file of docs/how-to/write-a-source.md is found by its entry point and passes the same suite.

    In processes of its own: kinds are found when Esker starts.
    """
    offer(tmp_path / "site", page_of_tides())
    paths = [str(tmp_path / "site"), *sys.path]
    suite = ["tests/sources/test_conformance.py", "-k", "tides", "-m", "not soak"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "--basetemp", str(tmp_path / "t"), *suite],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b5 passed\b", done.stdout), done.stdout
