"""What is read and written of a lake without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import NotWrittenWithoutSpark
from esker.project import load_project
from esker.reading.lake import Lake


def test_catalogs_that_only_java_writes(tmp_path: Path) -> None:
    """A tag in a catalog of folders needs Spark: PyIceberg has no such catalog."""
    (tmp_path / "esker.yml").write_text("project: shop\ncatalog: {type: hadoop, warehouse: lake}\n")
    with pytest.raises(NotWrittenWithoutSpark) as raised:
        Lake(load_project(tmp_path)).writable("lake", "shop.works")
    assert raised.value.reason.startswith("PyIceberg has no catalog of type hadoop")
