"""Fixtures that most tests share: one Spark per test process, a project folder per test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.folder import LASTING_SPARK, Folder
from tests.load.works import Make, Works
from tests.servers.fixtures import (
    azurite_port,
    database,
    duckdb_home,
    elasticsearch,
    fake_gcs_port,
    hdfs,
    hive,
    kafka,
    moto,
    nessie,
    opensearch,
    postgres,
    seaweedfs,
    spark_cluster,
    trino,
)

__all__ = [
    "azurite_port",
    "database",
    "duckdb_home",
    "elasticsearch",
    "fake_gcs_port",
    "hdfs",
    "hive",
    "kafka",
    "moto",
    "nessie",
    "opensearch",
    "postgres",
    "seaweedfs",
    "spark_cluster",
    "trino",
]
"""Servers are fixtures of this file alone: pytest starts another one for each conftest.py that has them."""

SHARED = (
    "spark_cluster",
    "seaweedfs",
    "postgres",
    "opensearch",
    "elasticsearch",
    "kafka",
    "outcomes",
    "stories",
    "refusing",
)
"""Fixtures that take long to make and serve many tests."""

COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All tests that were collected, before some were deselected."""


SOURCE_TREE = pytest.StashKey[str]()
"""What git said of the source tree when the tests began."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember the state of the source tree, in CI, where nobody edits it meanwhile."""
    if os.environ.get("CI") and not hasattr(session.config, "workerinput"):
        session.config.stash[SOURCE_TREE] = _source_tree()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when tests have written into the source tree."""
    before = session.config.stash.get(SOURCE_TREE, None)
    if before is not None and before != (after := _source_tree()):
        print(f"\ntests changed the source tree; before:\n{before}after:\n{after}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _source_tree() -> str:
    told = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(told, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Send tests that share a dear fixture to one test process; keep the list of all tests."""
    config.stash[COLLECTED] = list(items)
    for item in items:
        for name in SHARED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                break


@pytest.fixture(scope="session")
def spark_running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start the one Spark of this test process, with the jars that any test in it needs."""
    buckets = {"type": "sqlite", "path": "buckets.db", "warehouse": "s3://nowhere"}
    server = {"type": "jdbc", "url": "jdbc:postgresql://127.0.0.1/nowhere", "warehouse": "s3://nowhere"}
    rows = {"type": "jdbc", "url": "jdbc:mariadb://127.0.0.1/nowhere", "table": "nothing"}
    records = Folder.files_pipeline("landing/*", "avro", "shop.records")
    connections: dict[str, Any] = {"buckets": buckets, "server": server}
    if any(item.get_closest_marker("soak") for item in request.session.items):
        home = "abfss://nowhere@nobody.dfs.core.windows.net/"
        connections |= {"azure": {"type": "azure", "account": "nobody"}, "google": {"type": "gcs"}}
        for name, place in (("azure", home), ("google", "gs://nowhere")):
            catalog = {"type": "sqlite", "path": f"{name}.db", "warehouse": place, "store": name}
            connections[f"in_{name}"] = catalog
    folder = Folder(
        tmp_path_factory.mktemp("spark"),
        spark=LASTING_SPARK,
        store={"type": "s3"},
        connections=connections,
        pipelines={"rows": {"source": rows, "table": "shop.rows"}, "records": records},
    )
    _ = folder.open().engine
    yield
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        context.stop()


@pytest.fixture
def folder(tmp_path: Path, spark_running: None) -> Folder:
    """A project folder whose pipelines run in this process."""
    return Folder(tmp_path / "project")


@pytest.fixture
def make_folder(tmp_path: Path, spark_running: None) -> Callable[..., Folder]:
    """Make project folders with other keys."""

    def make(name: str = "project", **keys: Any) -> Folder:
        return Folder(tmp_path / name, **keys)

    return make


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory, spark_running: None) -> Make:
    """Make tables loaded by key."""
    return lambda **keys: Works(tmp_path_factory.mktemp("works"), **keys)
