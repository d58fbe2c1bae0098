"""Commands that need no Spark do not load it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment

COMMANDS = {
    "--help": 0,
    "run --help": 0,
    "check": 0,
    "schema": 0,
    "init new": 0,
    "version --json": 0,
    "status": 0,
    "run nosuch": 2,
    "plan nosuch": 2,
    "peek nosuch": 2,
    "show shop.orders --env nosuch": 2,
    "doctor --env nosuch": 2,
}
WATCHED = """
import json, sys
from esker.cli.main import main
found = {}
for command in sys.argv[1:]:
    sys.argv = ["esker", *command.split()]
    try:
        main()
    except SystemExit as end:
        heavy = {"pyspark", "py4j", "pyarrow", "numpy", "pandas"} & set(sys.modules)
        found[command] = [end.code or 0, sorted(heavy)]
print()
print(json.dumps(found))
"""


@pytest.mark.process
def test_no_spark_is_loaded(shop: Path) -> None:
    """They work on a machine without Java, and a mistyped name is answered before Spark is loaded."""
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED, *COMMANDS],
        cwd=shop,
        env=environment({"PATH": "", "JAVA_HOME": None}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found == {command: [status, []] for command, status in COMMANDS.items()}
