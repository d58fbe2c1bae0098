"""Fixtures for tests of dlt: no telemetry, and no pipeline that stays active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dlt.common.configuration.container import Container
from dlt.common.pipeline import PipelineContext

from tests.dlt.shop import Shop
from tests.folder import Folder


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    yield
    context = Container()[PipelineContext]
    if context.is_active():
        context.deactivate()


@pytest.fixture
def shop(make_folder: Callable[..., Folder], tmp_path: Path) -> Shop:
    return Shop(make_folder(pipelines={}), tmp_path / "dlt")
