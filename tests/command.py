"""`esker` in a process of its own, as users start it."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.folder import SPARK

CHILD_SPARK: dict[str, Any] = SPARK | {"driver_memory": "1g"}
"""Spark for a process of its own beside that of the tests: with less memory."""
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For commands on projects that say nothing of Java. It lives for seconds there: on a busy machine a first
run took half as long as without."""


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on standard output."""
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The error of the document: the command's own, or that of the first pipeline that has one."""
        document = self.document
        candidates = [document, *document.get("pipelines", ())]
        found: dict[str, Any] = next(each["error"] for each in candidates if each.get("error"))
        return found


def start(
    project: Path,
    *arguments: str,
    env: Mapping[str, str | None] | None = None,
    under: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start a command on a project, by another program if one is named.

    `env` changes the environment; None removes a variable.
    """
    changed = {**os.environ, "NO_COLOR": "1", **(env or {})}
    return subprocess.Popen(
        [*under, Path(sysconfig.get_path("scripts")) / "esker", *arguments, "--project", project],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in changed.items() if value is not None},
    )


def finish(process: subprocess.Popen[str]) -> Answer:
    """Wait for a command's end."""
    with process:
        try:
            stdout, stderr = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            raise
    return Answer(process.returncode, stdout, stderr)


def esker(
    project: Path,
    *arguments: str,
    env: Mapping[str, str | None] | None = None,
    under: Sequence[str] = (),
) -> Answer:
    """Run a command on a project."""
    return finish(start(project, *arguments, env=env, under=under))
