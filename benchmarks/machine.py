"""What a benchmark was measured with: the commit and the machine, in one line for the page of figures."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from esker.engine.java import find_java
from esker.errors import EskerError

ROOT = Path(__file__).parents[1]


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(folder: Path = ROOT) -> str:
    """Return the commit that is checked out, with "-dirty" if files differ from it."""
    try:
        head = _git(folder, "rev-parse", "--short", "HEAD").strip()
        return f"{head}-dirty" if _git(folder, "status", "--porcelain") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


COMMIT = commit()
"""As the program began: what is checked out may change while it measures."""


def measured_with() -> str:
    """Return commit, cores, CPU, memory and Java, in words."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"measured at commit {COMMIT}: {cores} cores, {_cpu()}, {memory:.0f} GiB of memory, {_java()}"


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java() -> str:
    try:
        return f"Java {find_java().version}"
    except EskerError:
        return "no Java"
