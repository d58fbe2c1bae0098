"""Fixtures for tests of the engine's set-up."""

from __future__ import annotations

from tests.servers.fixtures import database, postgres, seaweedfs, spark_cluster

__all__ = ["database", "postgres", "seaweedfs", "spark_cluster"]
