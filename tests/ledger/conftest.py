"""Fixtures for tests of what Esker remembers."""

from __future__ import annotations

from tests.servers.fixtures import database, postgres

__all__ = ["database", "postgres"]
