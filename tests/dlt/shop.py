"""A shop whose rows a dlt pipeline loads, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dlt

import esker.dlt
from esker.engine.iceberg.table import Table, TableId, load
from tests.folder import Folder


class Shop:
    """A dlt pipeline `shop` that loads into `lake.shop` of a project."""

    def __init__(self, folder: Folder, work: Path, **keys: Any) -> None:
        self.folder, self.work, self.keys = folder, work, keys

    def pipeline(self, work: Path | None = None, name: str = "shop", **keys: Any) -> Any:
        return dlt.pipeline(
            name,
            destination=esker.dlt.destination(self.folder.open(), **self.keys, **keys),
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
