"""Commands that need no Spark do not load it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment
from tests.folder import Folder
from tests.no_java import WATCHED as WATCHED_FOR_JAVA
from tests.no_java import FakeJava
from tests.without_spark import TAKEN_AWAY, WITHOUT_JAVA

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


WITH_SPARK = (
    "plan",
    "run",
    "peek orders",
    "show shop.orders",
    "reindex nobody",
    "quality shop.orders",
    "backfill orders",
    "reconcile orders",
    "approve orders",
    "reject orders",
    "adopt shop.orders",
    "fsck",
    "contract infer orders",
    "quarantine list",
    "export spark-submit",
    "export stepfunctions",
)
"""Commands that need PySpark."""
INSTALLED = (
    TAKEN_AWAY
    + """
import io, json
from contextlib import redirect_stdout

import esker
from esker.cli.main import main
from esker.errors import EskerError

def command(*arguments):
    sys.argv = ["esker", *arguments]
    with redirect_stdout(io.StringIO()) as printed:
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    return [status, json.loads(printed.getvalue()) if "--json" in arguments else None]

def raised(call):
    try:
        call()
    except EskerError as error:
        return [error.code, error.remedy]

project = esker.open(".")
VERBS = sys.argv[1:]
told = {
    "statuses": [command(line)[0] for line in ("--help", "check", "status", "deliver", "schema")],
    "run": command("run", "--json")[1]["error"],
    "changes": raised(lambda: project.changes("shop.orders")),
    "scan": raised(lambda: project.scan("shop.orders")),
    "raised": [
        raised(lambda: project.run("orders")),
        raised(lambda: project.engine),
        raised(lambda: esker.dlt),
    ],
    "deliveries": project.deliver_all().status,
}
told["verbs"] = {line: command(*line.split(), "--json") for line in VERBS}
told["heavy"] = sorted(set(AWAY) & {name.partition(".")[0] for name in sys.modules})
print(json.dumps(told))
"""
)


@pytest.mark.process
def test_without_pyspark(shop: Path) -> None:
    """What needs none works where it is not installed; what needs it says what to install."""
    ended = subprocess.run(
        [sys.executable, "-c", INSTALLED, *WITH_SPARK, "doctor", "export duckdb"],
        cwd=shop,
        env=environment(WITHOUT_JAVA),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["statuses"] == [0, 0, 0, 0, 0]
    assert (told["run"]["code"], told["run"]["remedy"]) == ("ESK-ENGINE-002", "pip install 'esker[spark]'")
    assert told["changes"][0] == "ESK-PROJECT-009", "nothing was loaded yet"
    assert told["scan"][0] == "ESK-PROJECT-007"
    assert told["raised"] == [["ESK-ENGINE-022", "pip install 'esker[spark]'"]] * 3
    assert (told["deliveries"], told["heavy"]) == ("skipped", [])
    doctor, reader = told["verbs"].pop("doctor"), told["verbs"].pop("export duckdb")
    for line, (status, document) in told["verbs"].items():
        assert (status, document["error"]["remedy"]) == (2, "pip install 'esker[spark]'"), line
    [missing] = [check for check in doctor[1]["checks"] if not check["ok"]]
    assert (missing["check"], missing["remedy"]) == ("pyspark", "pip install 'esker[spark]'")
    assert (doctor[0], reader[0]) == (1, 0)


@pytest.mark.process
def test_windows_need_neither_java_nor_pyiceberg(tmp_path: Path) -> None:
    """Of the embedded catalog, the table's metadata is read directly."""
    window = {"every": "1d", "start": "2026-01-01"}
    source = {
        "type": "oai_pmh",
        "url": "http://127.0.0.1:9/oai",
        "metadata_prefix": "oai_dc",
        "window": window,
    }
    feed = {"source": source, "table": "shop.feed", "mode": "upsert", "key": ["id"], "order_by": "modified"}
    folder = Folder(tmp_path / "project", pipelines={"feed": feed})
    fake = FakeJava(tmp_path / "java")
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED_FOR_JAVA, "windows", "feed", "--json", "--project", str(folder.path)],
        env=environment(fake.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert {line["status"] for line in json.loads(ended.stdout)["windows"]} == {"missing"}
    assert json.loads(ended.stderr.splitlines()[-1]) == {"started": [], "heavy": []}
    assert not fake.was_started
