"""The command line as people meet it: in a process of its own, or in this one where that is quicker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from esker.cli.main import main
from tests.command import Answer

ESKER = (sys.executable, "-c", "from esker.cli.main import main; main()")


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return this process's environment with changes; None removes a variable."""
    return {name: value for name, value in {**os.environ, **changes}.items() if value is not None}


def ask(*arguments: str | Path, folder: Path, **changes: str | None) -> Answer:
    """Run a command in a folder and wait for its end."""
    ended = subprocess.run(
        [*ESKER, *map(str, arguments)],
        cwd=folder,
        env=environment(changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Answer(ended.returncode, ended.stdout, ended.stderr)


class Terminal:
    """Runs commands in this process. Those that need Spark use the one of the tests: `spark_running`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def ask(self, *arguments: str | Path) -> Answer:
        """Run a command and return what it printed."""
        self._monkeypatch.setattr(sys, "argv", ["esker", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = self._capsys.readouterr()
        status = end.value.code
        return Answer(status if isinstance(status, int) else 0, printed.out, printed.err)
