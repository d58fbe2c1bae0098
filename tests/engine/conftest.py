"""Fixtures for tests of the engine's set-up."""

from __future__ import annotations

from tests.servers.fixtures import database, postgres, spark_cluster

__all__ = ["database", "postgres", "spark_cluster"]
