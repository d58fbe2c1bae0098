"""A table of a Hive Metastore whose lock was switched off is not loaded by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import CatalogWithoutFence
from esker.project.catalogs.hive import LOCK
from tests.conformance.capabilities import FIRST, NAMES, names, works_of
from tests.conformance.lakes import made
from tests.load.works import WORKS


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.soak
def test_a_table_without_a_lock_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, spark_running: None
) -> None:
    """Whoever did it, and whenever: the next run says so, and goes on when it is switched on again."""
    with made("hive", request, tmp_path / "lake") as lake:
        works = works_of(lake, tmp_path / "work")
        works.load(FIRST)
        for value in ("false", "true"):
            works.sql(f"ALTER TABLE {WORKS} SET TBLPROPERTIES ('{LOCK}' = '{value}')")
            if value == "false":
                with pytest.raises(CatalogWithoutFence) as caught:
                    works.load([{"id": 1, "at": 2, "name": "agate"}])
                assert LOCK in caught.value.reason
                assert names(works) == NAMES
        works.load([{"id": 1, "at": 2, "name": "agate"}])
        assert names(works) == NAMES | {1: "agate"}
