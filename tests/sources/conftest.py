"""Fixtures for tests of sources."""

from __future__ import annotations

from tests.servers.fixtures import database, postgres, seaweedfs

__all__ = ["database", "postgres", "seaweedfs"]
