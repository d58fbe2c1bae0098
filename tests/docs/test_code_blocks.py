"""The examples in the documentation work.

The convention, for whoever writes a page:

- ` ```console `: lines that begin with `$ ` are run in order, in a folder of the page's own; `cd` on a line
  by itself lasts. Lines that begin with `> ` continue the command above. Other lines are output: each must
  come, apart from times, sizes, seconds, snapshots and places, which differ from run to run; what follows
  `…` may be anything. `$ echo $?` with a number below it says which exit status the command above ends
  with; every other command must end with 0.
- ` ```python `: run in the folder where the shell is by then. A ` ```text ` block next to it is its output.
- ` ```yaml ` that begins with `project:`: a project file, which must be right in every environment.
- Everything else (` ```sh `, ` ```text `) is for reading only.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from esker.project import load_project
from tests.command import SHORT_LIVED

ROOT = Path(__file__).parents[2]
RUN = ["README.md", "docs/tutorial.md"]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass
class Command:
    """A command of a console block, with the output that the page shows."""

    text: str
    output: list[str] = field(default_factory=list)
    status: int = 0


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        yield Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif line.startswith("> ") and found and not found[-1].output:
            found[-1].text += "\n" + line[2:]
        else:
            assert found, f"{block}: output without a command"
            found[-1].output.append(line)
    kept: list[Command] = []
    for command in found:
        if command.text == "echo $?":
            kept[-1].status = int(command.output[0])
        else:
            kept.append(command)
    return kept


@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RUN)
def test_page_can_be_followed(name: str, tmp_path: Path) -> None:
    """Whoever types what the page says gets what the page promises."""
    shell = _Shell(tmp_path)
    found = list(blocks(ROOT / name))
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "console":
            for command in commands(block):
                shell.run(command, block)
        elif block.language == "python":
            script = tmp_path / "example.py"
            script.write_text(block.text, encoding="utf-8")
            shown = following.text.splitlines() if following and following.language == "text" else []
            shell.run(Command(shlex.join([sys.executable, str(script)]), shown), block)


class _Shell:
    """Runs commands one by one, each in a shell of its own; only `cd` lasts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        programs = Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
            **SHORT_LIVED,
        }

    def run(self, command: Command, block: Block) -> None:
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == command.status, f"{block}: {command.text}\n{said}"
        lines = {_lasting(line) for line in said.splitlines()}
        for line in command.output:
            if "…" in line:
                came = any(other.startswith(_lasting(line.partition("…")[0])) for other in lines)
            else:
                came = _lasting(line) in lines
            assert came, f"{block}: {command.text} does not say\n{line}\nbut\n{said}"
        if folder := re.fullmatch(r"cd (\S+)", command.text):
            self._folder = self._folder / folder[1]


def _lasting(line: str) -> str:
    """Return what a line says in every run: without times, seconds, sizes, snapshots, places and frames."""
    for volatile in (
        r"file:///\S+",
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?",
        r"\b\d+(\.\d+)? k?B\b",
        r"\b\d+\.\d (?=│$)",
        r"\b\d{17,19}\b",
        r"[━─┏┓┗┛┡┩└┘┳╇┴]+",
    ):
        line = re.sub(volatile, "#", line)
    return re.sub(r"\s+", " ", line).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_project_files_are_right(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project file on a page is accepted, in every environment that it declares."""
    for block in blocks(page):
        if block.language != "yaml" or not block.text.startswith("project:"):
            continue
        for variable in re.findall(r"\$\{([A-Z0-9_]+)\}", block.text):
            monkeypatch.setenv(variable, "a value for the test")
        (tmp_path / "esker.yml").write_text(block.text, encoding="utf-8")
        for environment in (None, *load_project(tmp_path).environments):
            load_project(tmp_path, environment)
