"""Servers as fixtures of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import Database, Postgres, running_postgres
from tests.servers.seaweedfs import SeaweedFS, running_seaweedfs
from tests.servers.spark_cluster import SparkCluster, running_cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The one PostgreSQL of this test process."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Database:
    """An empty database of the test's own."""
    return postgres.new_database()


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[SeaweedFS]:
    """The one SeaweedFS of this test process; what project files need of it is in the environment."""
    with running_seaweedfs() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark cluster whose workers live in another time zone than everything else."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), TZ="Pacific/Auckland") as cluster:
        yield cluster
