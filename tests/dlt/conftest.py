"""Fixtures for tests of dlt: no telemetry, and working directories that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dlt
import pytest
from dlt.common.configuration.container import Container
from dlt.common.pipeline import PipelineContext

import esker.dlt
from esker.engine.iceberg.table import Table, TableId, load
from tests.folder import Folder


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    yield
    context = Container()[PipelineContext]
    if context.is_active():
        context.deactivate()


class Shop:
    """A dlt pipeline `shop` that loads into `lake.shop` of a project."""

    def __init__(self, folder: Folder, work: Path) -> None:
        self.folder, self.work = folder, work

    def pipeline(self, work: Path | None = None, name: str = "shop", **keys: Any) -> Any:
        return dlt.pipeline(
            name,
            destination=esker.dlt.destination(self.folder.open(), **keys),
            dataset_name="shop",
            pipelines_dir=str(work or self.work),
        )

    def run(self, data: Any, **keys: Any) -> Any:
        return self.pipeline().run(data, **keys)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        return self.folder.rows(f"shop.{table}", *columns)

    def stored(self, table: str) -> Table:
        engine = self.folder.open().engine
        engine.open_catalog("lake")
        return load(engine, TableId("lake", f"shop.{table}"))


@pytest.fixture
def shop(make_folder: Callable[..., Folder], tmp_path: Path) -> Shop:
    return Shop(make_folder(pipelines={}), tmp_path / "dlt")
