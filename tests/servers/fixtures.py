"""Servers as fixtures. Import them in the conftest.py of the folders that use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import Database, Postgres, running_postgres
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
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark cluster whose workers live in another time zone than everything else."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), TZ="Pacific/Auckland") as cluster:
        yield cluster
