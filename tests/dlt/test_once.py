"""Loads of dlt pipelines are in the tables once, whatever happens, and dlt finds its state again."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dlt
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed

from esker.dlt.loading import PackageLoading
from esker.errors import DltSchemaConflict, LoadLeftHalfway
from tests.dlt.killed_load import pipeline, resources
from tests.dlt.shop import Shop
from tests.scenarios.test_kill import wait_for_end

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


def check_loads(shop: Shop, *loads: int) -> None:
    assert shop.rows("events", "id", "load") == sorted((n, load) for load in loads for n in range(3))
    assert shop.rows("orders", "id", "load") == [(0, 2), (1, 2), (2, 2)]
    assert [row[0] for row in shop.rows("orders__lines", "sku")] == ["2-0", "2-1", "2-2"]
    assert len(shop.rows("_dlt_loads")) == len(loads)


SOAK = [(point, count) for point in ("before", "after") for count in range(1, 7)]


@pytest.mark.process
@pytest.mark.parametrize(
    ("point", "count", "is_second"),
    [("after", 3, False), *(pytest.param(*each, True, marks=pytest.mark.soak) for each in SOAK)],
)
def test_a_killed_load_goes_on(shop: Shop, point: str, count: int, is_second: bool) -> None:
    """Killed between tables: the package is completed by the next run, and no row comes twice."""
    if is_second:
        pipeline(shop.folder.path, shop.work).run(resources(1))
    command = [sys.executable, "-m", "tests.dlt.killed_load"]
    places = [str(shop.folder.path), str(shop.work), point, str(count)]
    process = subprocess.Popen(
        [*command, *places],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, output.decode()
    wait_for_end(process.pid)
    pipeline(shop.folder.path, shop.work).run()
    check_loads(shop, *([1, 2] if is_second else [2]))


def test_a_load_that_was_left_half_way(shop: Shop) -> None:
    """Where the working directory is lost in the middle of a load, the next one does not go on blindly."""
    with (
        patch.object(PackageLoading, "_load_loads", side_effect=ConnectionError("the catalog went away")),
        pytest.raises(PipelineStepFailed) as failed,
    ):
        pipeline(shop.folder.path, shop.work).run(resources(1)[:1])
    load_id = failed.value.load_id
    shutil.rmtree(shop.work)
    with pytest.raises(PipelineStepFailed) as refused:
        pipeline(shop.folder.path, shop.work).run(resources(2)[:1])
    assert isinstance(refused.value.exception, LoadLeftHalfway)
    assert load_id in refused.value.exception.message
    pipeline(shop.folder.path, shop.work, give_up=(load_id,)).run()
    assert shop.rows("events", "id", "load") == sorted((n, load) for load in (1, 2) for n in range(3))


def growing(upto: int) -> Any:
    rows = [{"id": n, "at": n} for n in range(1, upto + 1)]
    found = dlt.resource(rows, name="orders", primary_key="id")
    return found.apply_hints(incremental=dlt.sources.incremental("at", initial_value=0))


def test_state_is_found_on_another_machine(shop: Shop, tmp_path: Path) -> None:
    """Nothing is left but the lake: the next load brings what is new, and knows the schema."""
    shop.pipeline().run(growing(3))
    other = shop.pipeline(tmp_path / "elsewhere")
    other.run(growing(5))
    assert shop.rows("orders", "id") == [(1,), (2,), (3,), (4,), (5,)]
    assert other.default_schema_name == "shop"
    again = shop.pipeline(tmp_path / "third")
    again.sync_destination()
    assert "orders" in again.default_schema.tables
    assert again.state["sources"]["shop"]["resources"]["orders"]["incremental"]["at"]["last_value"] == 5


def test_a_schema_that_does_not_fit_loads_nothing(shop: Shop) -> None:
    """All tables are looked at before the first is loaded."""
    opened = shop.folder.open()
    opened.engine.open_catalog("lake")
    opened.engine.spark.sql("CREATE NAMESPACE lake.shop")
    opened.engine.spark.sql("CREATE TABLE lake.shop.orders (id DATE, amount DECIMAL(4,2)) USING iceberg")
    rows = [{"id": 1, "amount": 1.5}]
    with pytest.raises(PipelineStepFailed) as failed:
        shop.run([dlt.resource([{"id": 1}], name="events"), dlt.resource(rows, name="orders")])
    refused = failed.value.exception
    assert isinstance(refused, DltSchemaConflict)
    assert refused.reason in str(failed.value)  # dlt shows what to do
    assert refused.remedy in str(failed.value)
    assert 'column "id" is date in the table and bigint declared' in refused.reason
    assert 'column "amount" is decimal(4,2) in the table and double declared' in refused.reason
    assert [row.tableName for row in opened.engine.spark.sql("SHOW TABLES IN lake.shop").collect()] == [
        "orders"
    ]
