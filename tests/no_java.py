"""Whether a command starts Java, or loads what takes long."""

from __future__ import annotations

from pathlib import Path

WATCHED = """
import json, sys
started = []

def watch(event, details):
    if event in ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        started.append([event, str(details[0])])

sys.addaudithook(watch)
from esker.cli.main import main
status = 0
try:
    main()
except SystemExit as end:
    status = end.code
wanted = {"pyspark", "py4j", "pyiceberg", "pandas", "duckdb"}
heavy = sorted({name.partition(".")[0] for name in sys.modules} & wanted)
print(json.dumps({"started": started, "heavy": heavy}), file=sys.stderr)
sys.exit(status)
"""
"""A program that runs `esker` and tells, in the last line of standard error, what it started and loaded."""


class FakeJava:
    """A Java that records every start, and fails."""

    def __init__(self, home: Path) -> None:
        self._told = home / "started"
        program = home / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho "$@" >> "{self._told}"\nexit 1\n')
        program.chmod(0o755)
        self.environment = {"JAVA_HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin"}

    @property
    def was_started(self) -> bool:
        """Tell whether this Java was started."""
        return self._told.exists()
