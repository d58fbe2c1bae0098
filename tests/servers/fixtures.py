"""Servers as fixtures of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.readers.duckdb import with_extensions
from tests.servers.azurite import running_azurite
from tests.servers.fake_gcs import running_fake_gcs
from tests.servers.hdfs import running_hdfs
from tests.servers.hive import running_hive
from tests.servers.kafka import Kafka, running_kafka
from tests.servers.moto import running_moto
from tests.servers.nessie import running_nessie
from tests.servers.postgres import Database, Postgres, running_postgres
from tests.servers.search import SearchServer, running_elasticsearch, running_opensearch
from tests.servers.seaweedfs import SeaweedFS, running_seaweedfs
from tests.servers.spark_cluster import SparkCluster, running_cluster
from tests.servers.trino import Trino, running_trino


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


@pytest.fixture(scope="session")
def nessie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one Nessie of this test process."""
    with running_nessie(tmp_path_factory.mktemp("nessie")) as address:
        yield address


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the one Hive Metastore of this test process."""
    with running_hive(tmp_path_factory.mktemp("hive")) as port:
        yield port


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one HDFS of this test process."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one moto of this test process: Glue and S3."""
    with running_moto(tmp_path_factory.mktemp("moto")) as address:
        yield address


@pytest.fixture(scope="session")
def azurite_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the one Azurite of this test process."""
    with running_azurite(tmp_path_factory.mktemp("azurite")) as port:
        yield port


@pytest.fixture(scope="session")
def fake_gcs_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the one fake-gcs-server of this test process."""
    with running_fake_gcs(tmp_path_factory.mktemp("gcs")) as port:
        yield port


@pytest.fixture(scope="session")
def trino(seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """The one Trino of this test process, beside the one SeaweedFS."""
    with running_trino(tmp_path_factory.mktemp("trino")) as server:
        yield server


@pytest.fixture(scope="session")
def opensearch() -> Iterator[SearchServer]:
    """The one OpenSearch of this test process."""
    with running_opensearch() as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[SearchServer]:
    """The one Elasticsearch of this test process."""
    with running_elasticsearch() as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The one Kafka of this test process."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def duckdb_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which DuckDB finds its extensions."""
    return with_extensions(tmp_path_factory.mktemp("duckdb") / "home")
