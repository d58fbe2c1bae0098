"""Fixtures of deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deliver.told import Tell, Told


@pytest.fixture
def tell(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, spark_running: None
) -> Tell:
    """Make consumers, with keys of their own."""

    def make(pipeline: dict[str, Any] | None = None, **keys: Any) -> Told:
        lane = {"lane": "small", **(pipeline or {})}
        return Told(tmp_path_factory.mktemp("told"), monkeypatch, lane, **keys)

    return make
