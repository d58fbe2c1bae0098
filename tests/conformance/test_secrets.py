"""Credentials of catalogs and stores are in no output, log, plan, error, file or dump of Spark's settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from tests.conformance.capabilities import sales_of
from tests.conformance.lakes import KINDS, Lake, made
from tests.engine.test_jdbc_catalog import command_lines

ASKED = (
    ("check",),
    ("check", "--json"),
    ("plan",),
    ("plan", "--json"),
    ("run",),
    ("run", "--json"),
    ("status", "--json"),
    ("show", "shop.works", "--json"),
    ("doctor", "--json"),
)
SECRETIVE = ("rest", "jdbc", "s3tables", "nessie", "glue", "sqlite-s3", "sqlite-azure")


SHORT = (("plan", "--json"), ("run", "--json"))


def _cases() -> Iterator[Any]:
    yield pytest.param("rest", SHORT, id="rest-short")
    for kind in SECRETIVE:
        yield pytest.param(kind, ASKED, marks=pytest.mark.soak, id=kind)


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> Iterator[Lake]:
    """An empty lake of the test's kind."""
    with made(request.node.callspec.params["kind"], request, tmp_path / "lake") as lake:
        yield lake


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize(("kind", "asked"), list(_cases()))
def test_credentials_are_told_to_nobody(
    kind: str,
    asked: tuple[tuple[str, ...], ...],
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is asked, also when it goes wrong; and the settings of Spark, dumped in every way it has."""
    assert lake.secrets, KINDS[kind].title
    folder = sales_of(lake, tmp_path / "project")
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    said = {" ".join(words): _asked(folder.path, *words) for words in asked}
    assert '"status": "succeeded"' in said["run --json"]
    said |= _dumps(folder.open().engine.spark)
    assert "spark.sql.catalog.lake.warehouse" in said["SET"], "the dump is of the session with the catalog"

    # The same with keys that nobody accepts, and with a server that is not there.
    for name in ("S3_SECRET", "CATALOG_CREDENTIAL", "LAKE_PASSWORD"):
        monkeypatch.setenv(name, "nobody:mistaken-sesame")
    wrong = sales_of(lake, tmp_path / "wrong")
    wrong.write_csv("landing/a.csv", ["id"], [(1,)])
    for words in (("run",), ("doctor",)):
        said[f"wrong {words[0]}"] = _asked(wrong.path, *words)
    said["command lines"] = "\n".join(command_lines())

    secrets = (*lake.secrets, "mistaken-sesame")
    told = [(place, secret) for place, text in said.items() for secret in secrets if secret in text]
    assert told == []
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in content], path


def _asked(folder: Path, *words: str) -> str:
    """Return all that a command says."""
    result = CliRunner().invoke(app, [*words, "--project", str(folder)])
    return f"{result.output}\n{result.stderr}\n{result.exception!r}"


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
