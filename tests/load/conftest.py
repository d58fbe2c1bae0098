"""Fixtures for tests of loads."""

from __future__ import annotations

from tests.servers.fixtures import seaweedfs

__all__ = ["seaweedfs"]
