"""Which files of tables are opened while something is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from esker.engine.iceberg import manifests
from esker.reading.store import StoreOfTable


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Give the locations of all files that readers open, with nothing remembered from before."""
    found: list[str] = []
    file_system = StoreOfTable.filesystem

    def watched(self: StoreOfTable, location: str) -> tuple[Any, str]:
        found.append(location)
        return file_system(self, location)

    manifests._kept.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreOfTable, "filesystem", watched)
        yield found


def data_files(opened: list[str]) -> list[str]:
    """Return those that hold rows."""
    return [location for location in opened if location.endswith((".parquet", ".orc"))]


def manifests_among(opened: list[str]) -> list[str]:
    """Return those that are manifests; the one list of each read is none."""
    return [each for each in opened if each.endswith(".avro") and "/snap-" not in each]
