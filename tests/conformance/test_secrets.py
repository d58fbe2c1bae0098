"""Credentials of catalogs, stores and targets are in no output, log, plan, error, file or dump."""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esker.cli.main import app, main
from tests.conformance.capabilities import FIRST, works_of
from tests.conformance.lakes import KINDS, Lake, made
from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server
from tests.engine.test_jdbc_catalog import command_lines
from tests.load.works import Works
from tests.servers.ports import free_port

Words = tuple[str, ...]

WRONG = "mistaken-sesame"
TOLD = {
    "HOOK_TOKEN": "opensesame-of-hook",
    "HOOK_SIGN": "opensesame-of-sign",
    "HOOK_PATH": "opensesame-of-path",
}
"""What the consumer's target needs."""
SECRETIVE = ("rest", "jdbc", "s3tables", "nessie", "glue", "sqlite-s3", "sqlite-azure")

FIRST_ASKED: tuple[Words, ...] = (("check",), ("check", "--json"), ("plan",), ("plan", "--json"), ("run",))
"""Before there is a table."""
ASKED: tuple[Words, ...] = (
    *(("run", "--json"), ("plan", "--json"), ("status",), ("status", "--json"), ("peek", "works")),
    *(("show", "shop.works"), ("show", "shop.works", "--json"), ("changes", "shop.works", "--json")),
    *(("deliver", "--json"), ("deliver", "--retry-dead"), ("status",), ("reindex", "search", "--json")),
    *(("reconcile", "works"), ("reconcile", "works", "--repair"), ("backfill", "works", "--full", "--json")),
    *(("sql", "-c", "SET; SET -v; DESCRIBE TABLE EXTENDED shop.works", "--json"), ("windows", "works")),
    *(
        ("sql", "-c", "SHOW TBLPROPERTIES shop.works"),
        ("sql", "-c", "EXPLAIN EXTENDED SELECT * FROM shop.works"),
    ),
    *(("quality", "shop.works"), ("quarantine", "list"), ("quarantine", "show", "shop.works")),
    *(("approve", "works"), ("reject", "works"), ("adopt", "shop.works"), ("contract", "infer", "works")),
    *(("doctor",), ("doctor", "--json"), ("fsck", "--json"), ("fsck", "--deep", "--repair", "--yes")),
    *(("export", who) for who in ("trino", "duckdb", "pyiceberg", "athena")),
    *(("export", who, "works", "--to", who) for who in ("spark-submit", "glue", "emr", "stepfunctions")),
)
NOT_ASKED = {"init", "schema", "version"}
"""Verbs that open no project."""
GONE: tuple[Words, ...] = (
    ("run",),
    ("run", "--json"),
    ("doctor",),
    ("plan",),
    ("deliver", "--json"),
    ("fsck",),
)
"""What is asked when keys are wrong, or servers are not there."""
SHORT = (
    (("plan", "--json"), ("run",)),
    (("run", "--json"), ("deliver", "--json")),
    (("run", "--json"), ("doctor",)),
)


def _cases() -> Iterator[Any]:
    yield pytest.param("rest", *SHORT, id="rest-short")
    for kind in SECRETIVE:
        # Iceberg's and Microsoft's clients ask a silent store again for minutes: there one question must do.
        gone = GONE if kind != "sqlite-azure" else GONE[:1]
        yield pytest.param(kind, FIRST_ASKED, ASKED, gone, marks=pytest.mark.soak, id=kind)


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> Iterator[Lake]:
    """An empty lake of the test's kind."""
    with made(request.node.callspec.params["kind"], request, tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A webhook that refuses one row, and quotes all that it was sent, as some servers do."""

    def script(asked: Asked) -> Answer | None:
        if asked.json["id"] != "2":
            return None
        return Answer(400, f"{asked.path}: {json.dumps(dict(asked.headers))}".encode())

    for name, value in TOLD.items():
        monkeypatch.setenv(name, value)
    with running_fault_server() as server:
        server.script = script
        yield server


def test_every_verb_is_asked() -> None:
    """A new one must be asked, too."""
    verbs = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    verbs |= {group.name for group in app.registered_groups if group.name}
    assert verbs == NOT_ASKED | {words[0] for words in (*FIRST_ASKED, *ASKED)}


class Ear:
    """Asks, and keeps all that is said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capsys, self._patch = capsys, patch
        self.said: dict[str, str] = {}

    def ask(self, title: str, folder: Path, asked: tuple[Words, ...]) -> list[Any]:
        """Call the command line as a process does. Returns the exit statuses."""
        statuses = []
        self._patch.chdir(folder)
        for words in asked:
            self._patch.setattr(sys, "argv", ["esker", *words, "--project", str(folder)])
            self._capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            printed = self._capsys.readouterr()
            self.said[f"{title} {' '.join(words)}"] = f"{printed.out}\n{printed.err}"
            statuses.append(ended.value.code or 0)  # SystemExit(None) is status 0
        return statuses


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize(("kind", "first", "asked", "gone"), list(_cases()))
def test_credentials_are_told_to_nobody(
    kind: str,
    first: tuple[Words, ...],
    asked: tuple[Words, ...],
    gone: tuple[Words, ...],
    lake: Lake,
    hook: FaultServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever is asked, also when keys are wrong and servers are not there; and Spark's log and settings."""
    assert lake.secrets, KINDS[kind].title
    caplog.set_level(logging.INFO)
    (tmp_path / "reports").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "reports"))
    ear = Ear(capsys, monkeypatch)
    works = _works(lake, tmp_path / "project", hook.address)
    assert set(ear.ask("first", works.folder.path, first)) == {0}
    statuses = dict(zip(asked, ear.ask("then", works.folder.path, asked), strict=True))
    assert statuses["run", "--json"] == 0
    assert statuses["deliver", "--json"] == 0
    spark = works.project.engine.spark
    dumps = _dumps(spark)
    assert "spark.sql.catalog.lake.warehouse" in dumps["SET"], "the dump is of the session with the catalog"
    letter = works.read("lake.shop.search__dead ORDER BY event")[0]
    assert "********" in letter["error"], "what the server quoted is kept without the secrets"
    dumps["letter"] = str(letter)

    # The same with keys that nobody accepts, and with servers that are not there.
    secrets = {*lake.secrets, *TOLD.values(), WRONG}
    with monkeypatch.context() as patch:
        for name, value in _mistaken(lake):
            patch.setenv(name, value)
            secrets.add(value)
        wrong = _works(lake, tmp_path / "wrong", hook.address)
        assert 0 not in ear.ask("wrong", wrong.folder.path, gone)[:1]
    nowhere = f"127.0.0.1:{free_port()}"
    away = json.loads(re.sub(r"127\.0\.0\.1:\d+", nowhere, json.dumps(lake.project)))
    if "path" in away["catalog"]:
        away["catalog"]["path"] = str(tmp_path / "gone.db")  # only its store is a server
    lonely = _works(Lake(away), tmp_path / "gone", f"http://{nowhere}")
    assert 0 not in ear.ask("gone", lonely.folder.path, gone)[:1]
    # Only the target is not there: Spark's tasks fail, and say so in its log.
    deaf = _works(lake, tmp_path / "deaf", f"http://{nowhere}", "deaf")
    assert ear.ask("deaf", deaf.folder.path, (("deliver", "--json"),)) == [4]

    log = works.project.engine.log.read_text(errors="replace")
    assert log, "Spark has said something"
    said = ear.said | dumps | {"log": log, "messages": caplog.text}
    said["command lines"] = "\n".join(command_lines())
    told = [(place, secret) for place, text in said.items() for secret in secrets if secret in text]
    assert told == []
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in content], path


def _works(lake: Lake, path: Path, address: str, consumer: str = "search") -> Works:
    """Return a project on the lake, with files to load, and a consumer whose target needs secrets."""
    hook = {
        "type": "webhook",
        "url": f"{address}/${{HOOK_PATH}}",
        "auth": {"type": "bearer", "token": "${HOOK_TOKEN}"},
        "signature": {"secret": "${HOOK_SIGN}"},
        "retries": 0,
    }
    told = {"from": "works", "to": {"type": "webhook", "connection": "hook"}, "batch": {"spark": 0}}
    project = {**lake.project, "connections": {"hook": hook}, "consumers": {consumer: told}}
    works = works_of(Lake(project), path)
    works.folder.write_csv("landing/a.csv", ["id", "at", "name"], [list(row.values()) for row in FIRST])
    return works


def _mistaken(lake: Lake) -> Iterator[tuple[str, str]]:
    """Yield the variables that hold the lake's secrets, with values that nobody accepts."""
    for name in sorted(set(re.findall(r"\$\{(\w+)\}", json.dumps(lake.project)))):
        if name == "AZURE_KEY":
            yield name, base64.b64encode(f"{WRONG} and more".encode()).decode()
        elif name == "CATALOG_CREDENTIAL":
            yield name, f"nobody:{WRONG}"
        elif not name.endswith("_KEY"):
            yield name, WRONG


def _dumps(spark: Any) -> dict[str, str]:
    """Return Spark's settings as people and tools print them."""
    java = spark.sparkContext._jsc.sc()
    return {
        "SET": "\n".join(str(tuple(row)) for row in spark.sql("SET").collect()),
        "SET -v": "\n".join(str(tuple(row)) for row in spark.sql("SET -v").collect()),
        "SparkConf": str(java.getConf().toDebugString()),
        "explain": spark.table("lake.shop.works")._jdf.queryExecution().toString(),
        "properties": "\n".join(
            str(tuple(row)) for row in spark.sql("SHOW TBLPROPERTIES lake.shop.works").collect()
        ),
    }
