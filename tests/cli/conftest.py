"""A terminal, and a project to stand in."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.project.scaffold import write_sample
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A command line in this process."""
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder of the sample project."""
    write_sample(tmp_path / "shop")
    return tmp_path / "shop"
